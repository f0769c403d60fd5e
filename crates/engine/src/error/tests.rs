use super::*;

#[test]
fn names_begin_messages_as_vertica_writes_them() {
    assert_eq!(capitalised("load balance group"), "Load balance group");
    assert_eq!(capitalised(""), "");
}
