import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;

/** What tools on pgjdbc do, against the server that the PG* variables name, once for each way of asking that is named. */
public final class Pgjdbc {
    private static final List<String> FAULTS = new ArrayList<>();

    private final String mode;

    private Pgjdbc(String mode) {
        this.mode = mode;
    }

    public static void main(String[] arguments) {
        for (String mode : arguments) {
            new Pgjdbc(mode).all();
        }
        FAULTS.forEach(System.err::println);
        System.exit(FAULTS.isEmpty() ? 0 : 1);
    }

    private interface Test {
        void run(Connection connection) throws Exception;
    }

    private void all() {
        test("describes the driver and the server", this::product);
        test("answers every question about the catalog", this::everyQuestion);
        test("lists schemas and tables", this::tables);
        test("lists columns with types and remarks", this::columns);
        test("lists functions", this::functions);
        test("knows types", this::types);
        test("finds no keys where there are none", this::keys);
        test("binds parameters", this::parameters);
        test("reads values", this::values);
        test("prepares for good after some uses", this::prepares);
        test("fetches in portions", this::portions);
        test("uses transactions", this::transactions);
        test("keeps a savepoint for each statement", this::savepoints);
        test("says what is wrong and where", this::errors);
        test("sets what pools set", this::pools);
    }

    private void test(String name, Test test) {
        try (Connection connection = connect()) {
            test.run(connection);
        } catch (Throwable thrown) {
            FAULTS.add(mode + ": " + name + ": " + thrown + place(thrown));
        }
    }

    private static String place(Throwable thrown) {
        for (StackTraceElement element : thrown.getStackTrace()) {
            if (element.getClassName().equals("Pgjdbc")) {
                return " (line " + element.getLineNumber() + ")";
            }
        }
        return "";
    }

    private Connection connect(String... more) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        properties.setProperty("password", System.getenv("PGPASSWORD"));
        properties.setProperty("preferQueryMode", mode);
        for (int index = 0; index + 1 < more.length; index += 2) {
            properties.setProperty(more[index], more[index + 1]);
        }
        String place = System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        return DriverManager.getConnection("jdbc:postgresql://" + place, properties);
    }

    private static void same(Object found, Object expected) {
        if (!String.valueOf(found).equals(String.valueOf(expected))) {
            throw new AssertionError(found + " is not " + expected);
        }
    }

    private static void contains(TreeSet<String> found, String... expected) {
        for (String one : expected) {
            if (!found.contains(one)) {
                throw new AssertionError(one + " is not in " + found);
            }
        }
    }

    private static TreeSet<String> column(ResultSet rows, String name) throws SQLException {
        TreeSet<String> values = new TreeSet<>();
        while (rows.next()) {
            values.add(rows.getString(name));
        }
        return values;
    }

    private static String one(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getString(1);
        }
    }

    private void product(Connection connection) throws SQLException {
        DatabaseMetaData about = connection.getMetaData();
        same(about.getDatabaseProductName(), "PostgreSQL");
        same(about.getDatabaseMajorVersion(), 15);
        same(about.getUserName(), "dbadmin");
        same(about.getMaxColumnNameLength(), 63);
        same(connection.getCatalog(), "switchyard");
        same(connection.getSchema(), "v_catalog");
        same(connection.isValid(5), true);
        contains(new TreeSet<>(List.of(about.getSQLKeywords().split(","))), "analyze");
        same(connection.getTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
    }

    /** Calls whatever gives rows, with arguments that restrict nothing or name a table, and reads all rows. */
    private void everyQuestion(Connection connection) throws Exception {
        DatabaseMetaData about = connection.getMetaData();
        List<String> faults = new ArrayList<>();
        int asked = 0;
        for (Method method : DatabaseMetaData.class.getMethods()) {
            if (method.getReturnType() != ResultSet.class) {
                continue;
            }
            for (boolean named : new boolean[] {false, true}) {
                try (ResultSet rows = (ResultSet) method.invoke(about, arguments(method, named))) {
                    readAll(rows);
                    asked++;
                } catch (Exception thrown) {
                    Throwable cause = thrown.getCause() == null ? thrown : thrown.getCause();
                    boolean driver = cause instanceof java.sql.SQLFeatureNotSupportedException;
                    if (!driver) {
                        faults.add(method.getName() + ": " + cause.getMessage());
                    }
                }
            }
        }
        same(faults, List.of());
        same(asked > 40, true);
    }

    private static Object[] arguments(Method method, boolean named) {
        Class<?>[] types = method.getParameterTypes();
        Object[] arguments = new Object[types.length];
        int texts = 0;
        for (int index = 0; index < types.length; index++) {
            if (types[index] == String.class) {
                String[] names = {null, "v_catalog", "nodes", "node_name"};
                boolean table = texts == 2 && !method.getName().equals("getSchemas");
                arguments[index] = named ? names[texts % 4] : table ? "%" : null;
                texts++;
            } else if (types[index] == int.class) {
                arguments[index] = DatabaseMetaData.bestRowSession;
            } else if (types[index] == boolean.class) {
                arguments[index] = false;
            }
        }
        return arguments;
    }

    private static int readAll(ResultSet rows) throws SQLException {
        ResultSetMetaData about = rows.getMetaData();
        int count = 0;
        while (rows.next()) {
            for (int index = 1; index <= about.getColumnCount(); index++) {
                rows.getObject(index);
            }
            count++;
        }
        return count;
    }

    private void tables(Connection connection) throws SQLException {
        DatabaseMetaData about = connection.getMetaData();
        contains(column(about.getSchemas(), "TABLE_SCHEM"), "v_catalog", "v_monitor", "switchyard", "pg_catalog");
        same(column(about.getCatalogs(), "TABLE_CAT"), "[switchyard]");
        contains(column(about.getTableTypes(), "TABLE_TYPE"), "TABLE", "SYSTEM TABLE", "VIEW");
        ResultSet rows = about.getTables(null, "v_catalog", "node%", new String[] {"TABLE"});
        same(rows.next(), true);
        same(rows.getString("TABLE_NAME"), "nodes");
        same(rows.getString("TABLE_TYPE"), "TABLE");
        same(rows.getString("REMARKS"), "The nodes of the cluster and their state.");
        same(rows.next(), false);
        contains(column(about.getTables(null, "pg_catalog", "%", null), "TABLE_NAME"), "pg_class", "pg_settings");
        contains(column(about.getTables(null, null, "%", new String[] {"SYSTEM VIEW", "VIEW"}), "TABLE_NAME"), "columns");
    }

    private void columns(Connection connection) throws SQLException {
        ResultSet rows = connection.getMetaData().getColumns(null, "v_catalog", "nodes", "node\\_%");
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            String described = rows.getString("COLUMN_NAME") + " " + rows.getString("TYPE_NAME");
            found.add(described + " " + rows.getInt("DATA_TYPE") + " " + rows.getInt("NULLABLE"));
            same(rows.getString("REMARKS").isEmpty(), false);
            same(rows.getString("IS_AUTOINCREMENT"), "NO");
        }
        same(found.get(0), "node_name varchar " + Types.VARCHAR + " " + DatabaseMetaData.columnNullable);
        same(found.get(1), "node_id int8 " + Types.BIGINT + " " + DatabaseMetaData.columnNullable);
        try (Statement statement = connection.createStatement()) {
            ResultSetMetaData about = statement.executeQuery("SELECT * FROM v_catalog.nodes").getMetaData();
            same(about.getColumnName(1), "node_name");
            same(about.getColumnTypeName(1), "varchar");
            same(about.getTableName(1), "nodes");
            same(about.isAutoIncrement(1), false);
            same(about.isNullable(1), ResultSetMetaData.columnNullable);
        }
    }

    private void functions(Connection connection) throws SQLException {
        DatabaseMetaData about = connection.getMetaData();
        contains(column(about.getFunctions(null, "v_catalog", "%"), "FUNCTION_NAME"), "has_role");
        contains(column(about.getProcedures(null, "hologres", "%"), "PROCEDURE_NAME"), "hg_create_table_group");
        ResultSet rows = about.getFunctionColumns(null, "v_catalog", "has_role", "%");
        same(rows.next(), true);
        same(rows.getString("TYPE_NAME"), "bool");
    }

    private void types(Connection connection) throws SQLException {
        contains(column(connection.getMetaData().getTypeInfo(), "TYPE_NAME"), "int8", "text", "timestamptz", "inet");
        try (Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery("SELECT proargtypes, proallargtypes, proacl, proname FROM pg_proc");
            same(readAll(rows) > 100, true);
        }
    }

    private void keys(Connection connection) throws SQLException {
        DatabaseMetaData about = connection.getMetaData();
        same(about.getPrimaryKeys(null, "v_catalog", "nodes").next(), false);
        same(about.getImportedKeys(null, "v_catalog", "nodes").next(), false);
        same(about.getExportedKeys(null, "v_catalog", "nodes").next(), false);
        same(about.getIndexInfo(null, "v_catalog", "nodes", false, true).next(), false);
        same(about.getBestRowIdentifier(null, "v_catalog", "nodes", 0, true).next(), false);
    }

    private void parameters(Connection connection) throws SQLException {
        String sql = "SELECT node_name FROM nodes WHERE node_name = ? AND node_id > ? AND node_state IN (?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, "node01");
            statement.setLong(2, 0);
            statement.setString(3, "UP");
            statement.setString(4, "DOWN");
            ResultSet rows = statement.executeQuery();
            same(rows.next(), true);
            same(rows.getString(1), "node01");
            if (!mode.equals("simple")) {
                same(statement.getParameterMetaData().getParameterTypeName(2), "int8");
                same(statement.getMetaData().getColumnTypeName(1), "varchar");
            }
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT ?::int4, ?::text, ?::bool, ?::numeric")) {
            statement.setInt(1, 7);
            statement.setNull(2, Types.VARCHAR);
            statement.setBoolean(3, true);
            statement.setBigDecimal(4, new BigDecimal("1.50"));
            ResultSet rows = statement.executeQuery();
            same(rows.next(), true);
            same(rows.getInt(1), 7);
            same(rows.getString(2), null);
            same(rows.getBoolean(3), true);
            same(rows.getBigDecimal(4).compareTo(new BigDecimal("1.5")), 0);
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT count(*) FROM nodes WHERE node_name = ANY (?)")) {
            statement.setArray(1, connection.createArrayOf("text", new String[] {"node01", "other"}));
            ResultSet rows = statement.executeQuery();
            same(rows.next(), true);
            same(rows.getLong(1), 1);
        }
    }

    private void values(Connection connection) throws SQLException {
        String sql = "SELECT 1::int2, 2::int4, 3::int8, 1.5::float8, 'text'::text, true, DATE '2026-01-02', "
            + "TIMESTAMP '2026-01-02 03:04:05', ARRAY['a', 'b'], NULL::text, now()";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int use = 0; use < 7; use++) {
                ResultSet rows = statement.executeQuery();
                same(rows.next(), true);
                same(rows.getShort(1) + rows.getInt(2) + rows.getLong(3), 6);
                same(rows.getDouble(4), 1.5);
                same(rows.getObject(5), "text");
                same(rows.getObject(6), true);
                same(rows.getDate(7), "2026-01-02");
                same(rows.getTimestamp(8), "2026-01-02 03:04:05.0");
                same(List.of((Object[]) rows.getArray(9).getArray()), "[a, b]");
                same(rows.getObject(10), null);
                same(rows.getTimestamp(11).getTime() > 0, true);
            }
        }
    }

    private void prepares(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT ?::int8 + 1")) {
            for (long number = 0; number < 12; number++) {
                statement.setLong(1, number);
                ResultSet rows = statement.executeQuery();
                same(rows.next(), true);
                same(rows.getLong(1), number + 1);
            }
        }
    }

    private void portions(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(10);
            int all = Integer.parseInt(one(connection, "SELECT count(*) FROM pg_attribute"));
            same(readAll(statement.executeQuery("SELECT attname, attnum FROM pg_attribute")), all);
            if (mode.equals("extended")) {
                statement.setMaxRows(3);
                same(readAll(statement.executeQuery("SELECT attname FROM pg_attribute")), 3);
            }
        }
        connection.commit();
        if (!mode.equals("simple")) {
            openPortals(connection);
        }
    }

    /** Two results are read in turns, each in portions of its own size, and end with their transaction. */
    private void openPortals(Connection connection) throws SQLException {
        String sql = "SELECT * FROM generate_series(1, ?::int4)";
        try (PreparedStatement first = connection.prepareStatement(sql);
                PreparedStatement second = connection.prepareStatement(sql)) {
            first.setFetchSize(3);
            first.setInt(1, 20);
            second.setFetchSize(2);
            second.setInt(1, 10);
            ResultSet one = first.executeQuery();
            ResultSet other = second.executeQuery();
            same(one(connection, "SELECT count(*) FROM pg_cursors WHERE name LIKE 'C\\_%'"), 2);
            for (int row = 1; row <= 10; row++) {
                same(one.next() && other.next(), true);
                same(one.getInt(1) + other.getInt(1), 2 * row);
            }
            same(other.next(), false);
            one.setFetchSize(4);
            int left = 0;
            while (one.next()) {
                left++;
            }
            same(left, 10);
            connection.commit();
            one = first.executeQuery();
            same(one.next(), true);
            connection.commit();
            try {
                readAll(one);
                throw new AssertionError("a result outlived its transaction");
            } catch (SQLException thrown) {
                same(thrown.getSQLState(), "34000");
            }
            connection.rollback();
        }
    }

    private void transactions(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            same(statement.executeUpdate("CREATE SUBCLUSTER undone"), 0);
            java.sql.Savepoint savepoint = connection.setSavepoint();
            statement.execute("CREATE SUBCLUSTER undone_too");
            connection.rollback(savepoint);
            connection.releaseSavepoint(connection.setSavepoint("named"));
            connection.rollback();
            same(one(connection, "SELECT count(*) FROM subclusters WHERE NOT is_default"), 0);
            connection.commit();
            connection.setReadOnly(true);
            same(one(connection, "SELECT 1"), 1);
            connection.rollback();
            connection.setReadOnly(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            same(one(connection, "SHOW TRANSACTION ISOLATION LEVEL"), "serializable");
            connection.commit();
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        }
        connection.setAutoCommit(true);
    }

    private void savepoints(Connection ignored) throws SQLException {
        try (Connection connection = connect("autosave", "always")) {
            connection.setAutoCommit(false);
            one(connection, "SELECT 1");
            try {
                one(connection, "SELECT * FROM missing");
                throw new AssertionError("a missing table was read");
            } catch (SQLException thrown) {
                same(thrown.getSQLState(), "42P01");
            }
            same(one(connection, "SELECT 2"), 2);
            connection.rollback();
        }
    }

    private void errors(Connection connection) throws SQLException {
        for (String[] wrong : new String[][] {
            {"SELECT * FROM missing", "42P01"},
            {"SELECT missing FROM nodes", "42703"},
            {"SELEC 1", "42601"},
            {"SELECT 1 / 0", "22012"},
            {"CREATE NODE n WITH '10.0.0.1' SUBCLUSTER missing", "42704"},
        }) {
            try (Statement statement = connection.createStatement()) {
                statement.execute(wrong[0]);
                throw new AssertionError(wrong[0] + " was answered");
            } catch (SQLException thrown) {
                same(thrown.getSQLState(), wrong[1]);
            }
        }
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP SUBCLUSTER IF EXISTS missing");
            same(statement.getWarnings() != null, true);
        }
    }

    private void pools(Connection connection) throws SQLException {
        connection.setClientInfo("ApplicationName", "pool");
        same(one(connection, "SHOW application_name"), "pool");
        connection.setSchema("v_monitor");
        connection.setNetworkTimeout(Runnable::run, 60_000);
        same(one(connection, "SELECT current_setting('search_path')").contains("v_monitor"), true);
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(30);
            same(statement.execute("SELECT 1; SELECT 2"), true);
            same(statement.getMoreResults(), true);
            ResultSet rows = statement.getResultSet();
            same(rows.next(), true);
            same(rows.getInt(1), 2);
        }
    }
}
