-- What `switchyard quickstart` makes at its first start: three members, two of them for reports.
ALTER DATABASE DEFAULT SET allow_loopback_addresses = on;
CREATE AUTHENTICATION quickstart METHOD 'trust' HOST '127.0.0.0/8';
CREATE AUTHENTICATION quickstart_v6 METHOD 'trust' HOST '::1/128';
GRANT AUTHENTICATION quickstart TO dbadmin;
GRANT AUTHENTICATION quickstart_v6 TO dbadmin;
CREATE SUBCLUSTER reporting;
ALTER SUBCLUSTER reporting ADD NODE {node2}, {node3};
CREATE NETWORK ADDRESS address1 ON {node1} WITH '127.0.0.1' PORT {port1};
CREATE NETWORK ADDRESS address2 ON {node2} WITH '127.0.0.1' PORT {port2};
CREATE NETWORK ADDRESS address3 ON {node3} WITH '127.0.0.1' PORT {port3};
CREATE LOAD BALANCE GROUP everyone WITH ADDRESS address1, address2, address3;
CREATE LOAD BALANCE GROUP reports WITH SUBCLUSTER reporting FILTER '127.0.0.0/8';
CREATE ROUTING RULE loopback ROUTE '127.0.0.0/8' TO everyone;
CREATE ROUTING RULE desk ROUTE '127.0.0.2/32' TO reports;
CREATE ROUTING RULE ROUTE WORKLOAD analytics TO SUBCLUSTER reporting PRIORITY 5;
CREATE ROLE analyst;
GRANT USAGE ON WORKLOAD analytics TO analyst;
GRANT analyst TO dbadmin;
