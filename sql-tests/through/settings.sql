SET TimeZone TO 'Europe/Vienna'

SELECT timestamptz '2024-07-01 12:00+00'

SET DateStyle TO 'German'

SELECT date '2024-07-01'

SET client_encoding TO 'LATIN1'

SELECT 'ü'

SELECT '日本'

RESET client_encoding

SET search_path TO pg_catalog

SHOW search_path

SET nothing TO 1

SET my.own TO 'x'

SHOW my.own

SET ROLE nobody_there

SELECT set_config('application_name', 'by a function', false)

SHOW application_name

RESET ALL

SHOW TimeZone

SET standard_conforming_strings TO off

SELECT 'a\\b'

DISCARD ALL

SET bytea_output TO escape

SELECT '\x00ff41'::bytea

SET extra_float_digits TO 0

SELECT 0.1::float8 + 0.2::float8

SHOW server_version

GRANT SELECT ON pg_catalog.pg_class TO nobody_there

CREATE ROLE of_through

DROP ROLE of_through

SELECT current_user, session_user, current_database()
