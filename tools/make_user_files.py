"""Writes the files of crates/monolayer-cli/tests/data-as-users-have-it that are no plain text, or long: python tools/make_user_files.py

Only the standard library is used, so that the bytes are the same everywhere.
"""

import gzip
import io
import json
import pathlib
import pickle
import struct
import zipfile

FOLDER = pathlib.Path(__file__).parent.parent / "crates/monolayer-cli/tests/data-as-users-have-it"
COLUMNS = b"May PER\nsails O\n\nin O\nMay DATE\n"


def npy(kind, shape, data):
    """The bytes of numpy.save: a header padded to 64 bytes, then the numbers."""
    header = "{'descr': %r, 'fortran_order': False, 'shape': %r, }" % (kind, shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def integers(shape, *numbers):
    return npy("<i8", shape, struct.pack(f"<{len(numbers)}q", *numbers))


def booleans(shape, *numbers):
    return npy("|b1", shape, bytes(numbers))


def floats(shape, *numbers):
    return npy("<f8", shape, struct.pack(f"<{len(numbers)}d", *numbers))


def texts(shape, *words):
    width = max(map(len, words))
    return npy(f"<U{width}", shape, b"".join(word.ljust(width, "\0").encode("utf-32-le") for word in words))


def npz(method, **arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), data, method)
    return file.getvalue()


def overlapping(count, data):
    """A zip archive whose entries all are the same packed bytes."""
    archive = npz(DEFLATED, tokens=data)
    start = archive.index(b"PK\x01\x02")
    end = archive.index(b"PK\x05\x06")
    entry, directory = archive[start:end], b""
    for number in range(count):
        directory += entry.replace(b"tokens.npy", b"%06d.npy" % number)
    record = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, len(directory), start, 0)
    return archive[:start] + directory + record


def long_columns(last, cells="{word} {tag}", sentences=4500):
    """Columns of more than 64 KiB, and what comes at their end."""
    tokens = ((f"w{i % 300}", f"x{i % 70}") for i in range(sentences))
    return "".join(
        cells.format(word=first, tag="NN") + "\n" + cells.format(word=second, tag="VB") + "\n\n" for first, second in tokens
    ).encode() + last


def safetensors(**tensors):
    """The bytes of a safetensors file: the length of its header, the header, the numbers."""
    header, data = {}, b""
    for name, (kind, shape, numbers) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def zip_of(name, data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


def stored_zstd(data):
    """A frame of Zstandard with one stored block, as RFC 8878 has it."""
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
CSV = b"word,tag\nMay,PER\nsails,O\n\nin,O\nMay,DATE\n"
FILES = {
    "columns.conll.gz": gzip.compress(COLUMNS, mtime=0),
    "columns.zst": stored_zstd(COLUMNS),
    "table.csv.gz": gzip.compress(CSV, mtime=0),
    "utf-16.conll": "May PER\nsails O\n".encode("utf-16"),
    "utf-16-without-mark.txt": "May PER\nsails O\n".encode("utf-16-le"),
    "frame.parquet": b"PAR1\x15\x04\x15\x20\x15\x24\x4c\x15\x02\x15\x00\x12\x00\x00PAR1",
    "list.pkl": pickle.dumps([["May", "sails"]], protocol=4),
    "corpus.zip": zip_of("train.conll", COLUMNS),
    "sheet.xlsx": zip_of("xl/workbook.xml", b"<workbook/>"),
    "model.pt": zip_of("archive/data.pkl", b"\x80\x02."),
    "paper.pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
    "noise.bin": bytes(range(1, 256)) * 2 + b"\0\0\1",
    "ids.npy": integers((2, 3), 5, 7, 0, 9, 0, 0),
    "vectors.npy": floats((1, 2, 2), 0.5, -1.0, 1e-7, 3.0),
    "objects.npy": npy("|O", (2,), b"\x80\x04."),
    "padded.npz": npz(DEFLATED, input_ids=integers((2, 3), 5, 7, 0, 9, 0, 0), attention_mask=integers((2, 3), 1, 1, 0, 1, 0, 0),
                      labels=integers((2, 3), 1, -100, -100, 2, -100, -100)),
    "classes.npz": npz(STORED, X=texts((2, 2), "May", "sails", "in", "May"), y=integers((2,), 1, 0)),
    "outputs.npz": npz(STORED, tokens=floats((1, 2, 1), 0.5, 2.0), labels=floats((1, 2, 1), 1.0, -1.0)),
    "lengths.npz": npz(STORED, tokens=integers((2, 4), 5, 6, 0, 0, 7, 0, 0, 0), labels=integers((2, 4), 1, 2, 0, 0, 1, 0, 0, 0),
                       lengths=integers((2,), 2, 1)),
    "lengths.safetensors": safetensors(tokens=("I64", [2, 2], struct.pack("<4q", 5, 6, 7, 0)), lengths=("I64", [2], struct.pack("<2q", 2, 1))),
    "boolean-mask.safetensors": safetensors(tokens=("I64", [2, 2], struct.pack("<4q", 5, 6, 7, 0)), mask=("BOOL", [2, 2], b"\1\1\1\0")),
    "lengths-of-vectors.npz": npz(STORED, tokens=floats((2, 2, 1), 0.5, 2.0, 1.5, 0.0), lengths=integers((2,), 2, 1)),
    "wrong-lengths.npz": npz(STORED, tokens=integers((2, 2), 5, 6, 7, 0), lengths=integers((2,), 2, 3)),
    "mask-of-floats.npz": npz(STORED, tokens=integers((2, 2), 5, 6, 7, 0), labels=integers((2, 2), 1, 2, 1, 0),
                              mask=floats((2, 2), 1.0, 1.0, 1.0, 0.0)),
    "padding-mask.npz": npz(STORED, tokens=integers((2, 2), 5, 6, 7, 0), key_padding_mask=booleans((2, 2), 0, 0, 0, 1)),
    "left-padding.npz": npz(STORED, tokens=integers((2, 2), 5, 6, 0, 7), attention_mask=booleans((2, 2), 1, 1, 0, 1)),
    "padded-vectors.npz": npz(STORED, X=floats((2, 2, 1), 0.5, 2.0, 1.5, 0.0), labels=integers((2, 2), 1, 2, 1, 0),
                              attention_mask=integers((2, 2), 1, 1, 1, 0)),
    "overlapping.npz": overlapping(3, integers((2, 3), 5, 7, 0, 9, 0, 0)),
    "late-comment.conll.gz": gzip.compress(long_columns(b"# text = May\n# newpar\nMay PER\n"), mtime=0),
    "late-number.conll.gz": gzip.compress(long_columns(b"# id 7\nMay x PER\n", "{word} x {tag}"), mtime=0),
    "late-cells.tsv.gz": gzip.compress(long_columns(b"New York\t\tLOC\n", "{word}\tx\t{tag}"), mtime=0),
    "late-cells.txt.gz": gzip.compress(long_columns(b"New York\t\tLOC\n", "{word}\tx\t{tag}"), mtime=0),
    "long-line.jsonl.gz": gzip.compress(b'{"tokens": ["May"], "note": "' + b"x" * 70000 + b'"}\n{"tokens": ["sails"]}\n', mtime=0),
    "latin-1-by-record.csv": "word,tag\né,X".encode() + b"\xe9\nb,Y\n\nc,Y\n",
    "bomb.conll.gz": gzip.compress(gzip.compress(b"a X\n" * (5 << 20), mtime=0), mtime=0),
    "truncated.conll.gz": gzip.compress(COLUMNS, mtime=0)[:-9],
}


def main():
    for name, data in FILES.items():
        (FOLDER / name).write_bytes(data)


if __name__ == "__main__":
    main()
