//! A seed stands for the same random numbers in every version: all that is drawn, and so every model, depends on them.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// The words of ChaCha with 8 rounds, as the crate `rand_chacha` 0.10 wrote them, for `seed_from_u64(1)`.
#[rustfmt::skip]
const SEED_1: [u32; 64] = [
    0x8ca40db1, 0x67094cea, 0xfc0e8e6b, 0x149406d8, 0x36070665, 0x98b82b03, 0x63080d42, 0x3825a7dc,
    0xd51bcbe5, 0x489ff253, 0xe9e22058, 0xb5ea8d36, 0x7eff8a17, 0x7609dfe0, 0xb5c5488e, 0x27143f42,
    0x0ab16013, 0xdff1a71b, 0x2c806908, 0xb4e550b0, 0x070c4371, 0x7bb6bdb2, 0xf11049e3, 0x93c3fa5e,
    0xd5db8e23, 0x19762de5, 0xf9e9e1a1, 0x43901a0b, 0x72a6fbe2, 0x7415efbf, 0x7391671d, 0x47bd11da,
    0x096437dd, 0xfdb44c31, 0xb621320b, 0xe99017b2, 0xc915f079, 0xf2764a7c, 0x41fe43dd, 0x221c45e6,
    0x0fc0902b, 0x57fbae92, 0x347039e6, 0x7af5168c, 0x298bbae1, 0x65b7b5a9, 0xeef6c456, 0x0381aea1,
    0xcb12544a, 0x0c86001b, 0x419f13ce, 0x2f64a601, 0xe2e4d04e, 0x8688cdf4, 0xd1424ae2, 0x44a45463,
    0x3845a42f, 0x16a27676, 0x1f0b800f, 0x19b76456, 0x062072e0, 0xfdb3467e, 0x36a78faa, 0xb1eb3645,
];

/// The same for `seed_from_u64(u64::MAX)` and stream 3.
#[rustfmt::skip]
const LAST_SEED_STREAM_3: [u32; 64] = [
    0xf7cf3475, 0x8ddffee9, 0x05aeb339, 0x8144c279, 0x8821d046, 0xc460debc, 0xa42df6ed, 0xdb72edb2,
    0xc7e92205, 0xe25887a8, 0x86ad9be5, 0x7e951d64, 0xc8f60103, 0x72543fd2, 0x7e32ca85, 0x82d55387,
    0x17b02ee6, 0x36d90763, 0xda625545, 0x0e666070, 0x35895130, 0xcf62f06b, 0x3fa32ff6, 0x758788f1,
    0x7bc7950b, 0x9bcde260, 0x4ad391df, 0xc43994aa, 0x4c5533ac, 0x8f2e41df, 0x41f9d354, 0x836b42a1,
    0xec639578, 0x96d65bd5, 0xe16c56bc, 0x4e78fbd1, 0x78547b21, 0x010db5c9, 0xa7712f22, 0x6c45f9e6,
    0x265451bf, 0x67603695, 0x56c3ea82, 0xd1461e08, 0x3bc762b1, 0x64d2f3fb, 0x3ef6ab9d, 0x87bf0ec2,
    0xaee3a2ad, 0x23b23dda, 0xf687c2cf, 0xca967020, 0x01d6070b, 0x97fff5a3, 0xd837a736, 0xfcd644a7,
    0x70f95f79, 0x52deec62, 0xad2767ea, 0xe23f2529, 0x0839ba4c, 0x248bc3d7, 0xa63d6f15, 0x8dcda86e,
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
