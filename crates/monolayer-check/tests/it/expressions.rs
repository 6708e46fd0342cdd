//! Compiler and checker read functions alike: the same texts are accepted.

use monolayer::approximate::expression::Expression as TheirExpression;
use monolayer_core::exact::expression::Expression;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_read_the_same_texts(text in "[x12own(),;+*/^ .e5-]{0,12}|[a-z]{1,4}\\(x1\\)|-?x1( [-+*/^] ?-?[0-9.]{1,4}){0,3}") {
        for dim in [1, 2] {
            prop_assert_eq!(TheirExpression::parse(&text, dim).is_ok(), Expression::parse(&text, dim).is_some(), "{}", text);
        }
    }
}
