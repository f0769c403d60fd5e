-- The same for clients that come by IPv6.
CREATE NETWORK ADDRESS address1_v6 ON {node1} WITH '::1' PORT {port1};
CREATE NETWORK ADDRESS address2_v6 ON {node2} WITH '::1' PORT {port2};
CREATE NETWORK ADDRESS address3_v6 ON {node3} WITH '::1' PORT {port3};
CREATE LOAD BALANCE GROUP everyone_v6 WITH ADDRESS address1_v6, address2_v6, address3_v6;
CREATE ROUTING RULE loopback_v6 ROUTE '::1/128' TO everyone_v6;
