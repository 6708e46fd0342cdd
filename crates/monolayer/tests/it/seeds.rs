//! A seed stands for the same random numbers in every version: all that is drawn, and so every model, depends on them.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// The words of ChaCha with 8 rounds, as the crate `rand_chacha` 0.10 wrote them, for `seed_from_u64(1)`.
#[rustfmt::skip]
const SEED_1: [u32; 64] = [
    0x8ca4_0db1, 0x6709_4cea, 0xfc0e_8e6b, 0x1494_06d8, 0x3607_0665, 0x98b8_2b03, 0x6308_0d42, 0x3825_a7dc,
    0xd51b_cbe5, 0x489f_f253, 0xe9e2_2058, 0xb5ea_8d36, 0x7eff_8a17, 0x7609_dfe0, 0xb5c5_488e, 0x2714_3f42,
    0x0ab1_6013, 0xdff1_a71b, 0x2c80_6908, 0xb4e5_50b0, 0x070c_4371, 0x7bb6_bdb2, 0xf110_49e3, 0x93c3_fa5e,
    0xd5db_8e23, 0x1976_2de5, 0xf9e9_e1a1, 0x4390_1a0b, 0x72a6_fbe2, 0x7415_efbf, 0x7391_671d, 0x47bd_11da,
    0x0964_37dd, 0xfdb4_4c31, 0xb621_320b, 0xe990_17b2, 0xc915_f079, 0xf276_4a7c, 0x41fe_43dd, 0x221c_45e6,
    0x0fc0_902b, 0x57fb_ae92, 0x3470_39e6, 0x7af5_168c, 0x298b_bae1, 0x65b7_b5a9, 0xeef6_c456, 0x0381_aea1,
    0xcb12_544a, 0x0c86_001b, 0x419f_13ce, 0x2f64_a601, 0xe2e4_d04e, 0x8688_cdf4, 0xd142_4ae2, 0x44a4_5463,
    0x3845_a42f, 0x16a2_7676, 0x1f0b_800f, 0x19b7_6456, 0x0620_72e0, 0xfdb3_467e, 0x36a7_8faa, 0xb1eb_3645,
];

/// The same for `seed_from_u64(u64::MAX)` and stream 3.
#[rustfmt::skip]
const LAST_SEED_STREAM_3: [u32; 64] = [
    0xf7cf_3475, 0x8ddf_fee9, 0x05ae_b339, 0x8144_c279, 0x8821_d046, 0xc460_debc, 0xa42d_f6ed, 0xdb72_edb2,
    0xc7e9_2205, 0xe258_87a8, 0x86ad_9be5, 0x7e95_1d64, 0xc8f6_0103, 0x7254_3fd2, 0x7e32_ca85, 0x82d5_5387,
    0x17b0_2ee6, 0x36d9_0763, 0xda62_5545, 0x0e66_6070, 0x3589_5130, 0xcf62_f06b, 0x3fa3_2ff6, 0x7587_88f1,
    0x7bc7_950b, 0x9bcd_e260, 0x4ad3_91df, 0xc439_94aa, 0x4c55_33ac, 0x8f2e_41df, 0x41f9_d354, 0x836b_42a1,
    0xec63_9578, 0x96d6_5bd5, 0xe16c_56bc, 0x4e78_fbd1, 0x7854_7b21, 0x010d_b5c9, 0xa771_2f22, 0x6c45_f9e6,
    0x2654_51bf, 0x6760_3695, 0x56c3_ea82, 0xd146_1e08, 0x3bc7_62b1, 0x64d2_f3fb, 0x3ef6_ab9d, 0x87bf_0ec2,
    0xaee3_a2ad, 0x23b2_3dda, 0xf687_c2cf, 0xca96_7020, 0x01d6_070b, 0x97ff_f5a3, 0xd837_a736, 0xfcd6_44a7,
    0x70f9_5f79, 0x52de_ec62, 0xad27_67ea, 0xe23f_2529, 0x0839_ba4c, 0x248b_c3d7, 0xa63d_6f15, 0x8dcd_a86e,
];

fn generators() -> [(ChaCha8Rng, [u32; 64]); 2] {
    let mut last = ChaCha8Rng::seed_from_u64(u64::MAX);
    last.set_stream(3);
    [(ChaCha8Rng::seed_from_u64(1), SEED_1), (last, LAST_SEED_STREAM_3)]
}

#[test]
fn words_of_a_seed_never_change() {
    for (mut rng, words) in generators() {
        let drawn: Vec<u32> = words.iter().map(|_| rng.next_u32()).collect();
        assert_eq!(drawn, words);
    }
}

/// Two words in a row are one number of 64 bits, the lower half first, wherever it begins.
#[test]
fn long_words_and_bytes_are_words_in_a_row() {
    for (mut rng, words) in generators() {
        assert_eq!(rng.next_u32(), words[0]);
        for pair in words[1..63].chunks_exact(2) {
            assert_eq!(rng.next_u64(), u64::from(pair[0]) | u64::from(pair[1]) << 32);
        }
    }
    for (mut rng, words) in generators() {
        let mut bytes = [0; 256];
        rng.fill_bytes(&mut bytes);
        assert_eq!(bytes.to_vec(), words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    }
}
