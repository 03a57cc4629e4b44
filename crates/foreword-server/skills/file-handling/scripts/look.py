#!/usr/bin/env python3
"""Says what a file is, by its bytes, and shows its outline.

usage: look.py [--rows N] FILE...

Needs Python 3.8 and nothing else. Uses pdftotext or pypdf for PDFs if one of them is there. Writes nothing, and reads
large files in part. Ends with 1 if a file could not be read.
"""

import argparse
import bz2
import codecs
import csv
import gzip
import io
import itertools
import json
import lzma
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tarfile
import urllib.parse
import zipfile
import zlib
from xml.etree import ElementTree

SAMPLE = 256 * 1024
MOST_XML = 256 * 1024 * 1024
WIDTH = 200


class Unreadable(Exception):
    """Why a file, or a part of it, cannot be shown."""


def main():
    parser = argparse.ArgumentParser(description="Says what a file is and shows its outline.")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--rows", type=int, default=10, metavar="N", help="rows, lines or entries to show (10)")
    options = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")
    failed = False
    for path in options.files:
        print("==", short(path))
        try:
            look(path, max(1, options.rows))
        except (Unreadable, OSError, EOFError, ValueError, KeyError, IndexError, struct.error, sqlite3.Error,
                zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, ElementTree.ParseError, RuntimeError,
                NotImplementedError, subprocess.SubprocessError, zlib.error) as error:
            print("NOT READ:", short(str(error) or type(error).__name__))
            failed = True
        print()
    return 1 if failed else 0


def look(path, rows):
    if not os.path.isfile(path):
        raise Unreadable("it is a folder; list it with ls" if os.path.isdir(path) else "there is no such file")
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(SAMPLE)
    print(f"size: {size:,} bytes")
    if not start:
        print("kind: empty")
    elif start.startswith(b"PK\x03\x04") or start.startswith(b"PK\x05\x06"):
        look_at_zip(path, rows)
    elif b"%PDF-" in start[:1024]:
        look_at_pdf(path, rows)
    elif start.startswith(b"SQLite format 3\x00"):
        look_at_sqlite(path, rows)
    elif image_size(start):
        print("kind: {} image, {} x {} pixels".format(*image_size(start)))
    elif start.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")) or start[257:262] == b"ustar":
        look_at_packed(path, start, rows)
    else:
        name = other_kind(start)
        if name:
            raise Unreadable(f"it is {name}, which needs other programs")
        look_at_text(path, start, size, rows)


def other_kind(start):
    kinds = (
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office file from before 2007, or one with a password"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"Rar!\x1a\x07", "a RAR archive"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"PAR1", "a Parquet file"),
        (b"\x7fELF", "a program"),
        (b"OggS", "sound or video (Ogg)"),
        (b"ID3", "sound (MP3)"),
        (b"RIFF", "sound or video (RIFF)"),
        (b"II*\x00", "a TIFF image"),
        (b"MM\x00*", "a TIFF image"),
    )
    for magic, name in kinds:
        if start.startswith(magic):
            return name
    if start[4:8] == b"ftyp":
        return "a video or an image of a phone (" + start[8:12].decode("ascii", "replace").strip() + ")"
    return None


def image_size(start):
    if start.startswith(b"\x89PNG\r\n\x1a\n") and len(start) >= 24:
        return ("PNG", *struct.unpack(">II", start[16:24]))
    if start[:6] in (b"GIF87a", b"GIF89a") and len(start) >= 10:
        return ("GIF", *struct.unpack("<HH", start[6:10]))
    if start[:2] == b"BM" and len(start) >= 26 and start[6:10] == b"\x00" * 4:
        width, height = struct.unpack("<ii", start[18:26])
        return "BMP", width, abs(height)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP" and len(start) >= 30:
        return ("WebP", *webp_size(start))
    if start[:3] == b"\xff\xd8\xff":
        place = 2
        while place + 9 <= len(start) and start[place] == 0xFF:
            marker = start[place + 1]
            if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
                height, width = struct.unpack(">HH", start[place + 5:place + 9])
                return "JPEG", width, height
            place += 2 + struct.unpack(">H", start[place + 2:place + 4])[0]
        return "JPEG", "?", "?"
    return None


def webp_size(start):
    if start[12:16] == b"VP8X":
        return tuple(int.from_bytes(start[at:at + 3], "little") + 1 for at in (24, 27))
    if start[12:16] == b"VP8L":
        bits = int.from_bytes(start[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return tuple(side & 0x3FFF for side in struct.unpack("<HH", start[26:30]))


def look_at_text(path, start, size, rows):
    encoding = encoding_of(start, len(start) < size)
    print("encoding:", encoding)
    with open(path, encoding=encoding, errors="replace", newline="") as file:
        text = file.read(SAMPLE)
    whole = len(start) == size
    if text.lstrip()[:1] in ("{", "[") and look_at_json(path, encoding, text, size):
        return
    dialect = table_dialect(text, whole)
    if dialect:
        look_at_table(path, encoding, dialect, rows)
        return
    with open(path, "rb") as file:
        lines = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
    print(f"kind: text, {counted(lines, 'line end')}")
    shown = text.splitlines()
    for line in shown[:rows]:
        print("  " + short(line))
    if len(shown) > rows or not whole:
        print("  ... (this is only the beginning)")


def encoding_of(start, is_part):
    for mark, name in ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if start.startswith(mark):
            return name
    if b"\x00" in start:
        raise Unreadable("it is binary, of no kind that is known here; first bytes: " + start[:16].hex(" "))
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, final=not is_part)
        return "utf-8"
    except UnicodeDecodeError:
        # A guess: the most frequent one. Each byte means something in latin-1, so it never fails.
        return "cp1252" if not re.search(rb"[\x81\x8d\x8f\x90\x9d]", start) else "latin-1"


def look_at_json(path, encoding, text, size):
    if size > 32 << 20:
        print("kind: perhaps JSON, too large to be read whole here")
        return False
    try:
        with open(path, encoding=encoding) as file:
            value = json.load(file)
    except (ValueError, RecursionError):
        first = text.lstrip().split("\n", 1)[0]
        try:
            value = json.loads(first)
        except (ValueError, RecursionError):
            return False
        print("kind: JSON, one value on each line; the first one:")
    else:
        print("kind: JSON")
    if isinstance(value, list):
        print(f"  a list of {len(value):,}; the first one:")
        value = value[0] if value else None
    if isinstance(value, dict):
        for key, inner in itertools.islice(value.items(), 50):
            much = f" of {len(inner):,}" if isinstance(inner, (list, dict, str)) else ""
            print(f"  {short(key)}: {type(inner).__name__}{much}")
    else:
        print("  " + short(json.dumps(value, ensure_ascii=False)))
    return True


def table_dialect(text, whole):
    """The separator, if most rows have the same number of columns, more than one."""
    lines = text.splitlines(keepends=True)
    if not whole and len(lines) > 1:
        lines = lines[:-1]
    best = None
    for separator in ",;\t|":
        try:
            counts = [len(row) for row in itertools.islice(csv.reader(lines, delimiter=separator), 200) if row]
        except csv.Error:
            continue
        if len(counts) < 2:
            continue
        usual = max(set(counts), key=counts.count)
        share = counts.count(usual) / len(counts)
        if usual > 1 and share >= 0.8 and (best is None or (share, usual) > best[:2]):
            best = (share, usual, separator)
    return best[2] if best else None


def look_at_table(path, encoding, separator, rows):
    csv.field_size_limit(16 << 20)
    shown, widths, count = [], {}, 0
    try:
        with open(path, encoding=encoding, errors="replace", newline="") as file:
            for row in csv.reader(file, delimiter=separator):
                count += 1
                widths[len(row)] = widths.get(len(row), 0) + 1
                if len(shown) <= rows:
                    shown.append(row)
    except csv.Error as error:
        print(f"NOT READ after row {count:,}: {error}")
    columns = max(widths, key=widths.get)
    print(f"kind: table, separator {separator!r}, {columns} columns, {counted(count, 'row')}, any header included")
    uneven = count - widths[columns]
    if uneven:
        print(f"  {counted(uneven, 'row')} with another number of columns")
    print_rows(shown, rows)
    if count > rows:
        print(f"  ... ({count - rows:,} more)")


def look_at_zip(path, rows):
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        if "xl/workbook.xml" in names:
            print("kind: XLSX workbook" + (" with macros" if "xl/vbaProject.bin" in names else ""))
            look_at_workbook(archive, rows)
        elif "word/document.xml" in names:
            print("kind: DOCX document")
            print_words(archive, ["word/document.xml"], rows)
        elif "ppt/presentation.xml" in names:
            print("kind: PPTX presentation")
            slides = [name for name in names if re.fullmatch(r"ppt/slides/slide\d+\.xml", name)]
            slides.sort(key=lambda name: int(re.search(r"(\d+)\.xml", name).group(1)))
            print(f"  {counted(len(slides), 'slide')}")
            print_words(archive, slides, rows)
        elif "content.xml" in names:
            print("kind: OpenDocument")
            print_words(archive, ["content.xml"], rows)
        else:
            print("kind: ZIP archive")
            entries = [(entry.filename, entry.file_size) for entry in archive.infolist()]
            print_entries(entries, rows)
            if any(entry.flag_bits & 1 for entry in archive.infolist()):
                print("  needs a password")


def open_xml(archive, name):
    if archive.getinfo(name).file_size > MOST_XML:
        raise Unreadable(f"{name} has more than {MOST_XML >> 20} MiB unpacked")
    return archive.open(name)


def tag(element):
    return element.tag.rsplit("}", 1)[-1]


def paragraph_words(element):
    """In Office files words stand in elements of their own, in OpenDocument anywhere in the paragraph."""
    if "opendocument" in element.tag or "oasis" in element.tag:
        return "".join(element.itertext()).strip()
    return "".join("\t" if tag(part) == "tab" else part.text or "" for part in element.iter()
                   if tag(part) in ("t", "tab")).strip()


def print_words(archive, names, rows):
    shown = 0
    for name in names:
        with open_xml(archive, name) as file:
            for _, element in ElementTree.iterparse(file):
                if tag(element) not in ("p", "h"):
                    continue
                words = paragraph_words(element)
                element.clear()
                if words:
                    if shown == rows:
                        print("  ... (there is more)")
                        return
                    print("  " + short(words))
                    shown += 1
    if not shown:
        print("  no text in it; look for pictures")


def look_at_workbook(archive, rows):
    relation = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
    targets = {}
    with open_xml(archive, "xl/_rels/workbook.xml.rels") as file:
        for element in ElementTree.parse(file).getroot():
            target = element.get("Target", "")
            targets[element.get("Id")] = target.lstrip("/") if target.startswith("/") else "xl/" + target
    with open_xml(archive, "xl/workbook.xml") as file:
        sheets = [element for element in ElementTree.parse(file).iter() if tag(element) == "sheet"]
    words = []
    if "xl/sharedStrings.xml" in archive.namelist():
        with open_xml(archive, "xl/sharedStrings.xml") as file:
            for _, element in ElementTree.iterparse(file):
                if tag(element) == "si":
                    words.append(cell_words(element))
                    element.clear()
    for sheet in sheets:
        hidden = ", hidden" if sheet.get("state", "visible") != "visible" else ""
        name = targets.get(sheet.get(relation))
        print(f"sheet {short(sheet.get('name', '?'))}{hidden}:")
        if name not in archive.namelist():
            print("  NOT READ: it is no table of cells")
            continue
        print_sheet(archive, name, words, rows)


def cell_words(element):
    """The text of a string, without the phonetic guides that may stand beside it."""
    guides = {part for guide in element.iter() if tag(guide) == "rPh" for part in guide.iter()}
    return "".join(part.text or "" for part in element.iter() if tag(part) == "t" and part not in guides)


def print_sheet(archive, name, words, rows):
    count, formulas, uncalculated, shown = 0, 0, 0, []
    with open_xml(archive, name) as file:
        for _, element in ElementTree.iterparse(file):
            if tag(element) != "row":
                continue
            count += 1
            cells = []
            for cell in element:
                value = next((part.text for part in cell if tag(part) == "v"), None)
                if any(tag(part) == "f" for part in cell):
                    formulas += 1
                    uncalculated += value is None
                    value = "(formula)" if value is None else value
                elif cell.get("t") == "s" and value:
                    value = words[int(value)]
                elif cell.get("t") == "inlineStr":
                    value = cell_words(cell)
                column = column_number(cell.get("r", ""), len(cells))
                cells.extend([""] * (min(column, 16384) - len(cells)))
                cells.append(value or "")
            if len(shown) < rows:
                shown.append(cells)
            element.clear()
    print(f"  {counted(count, 'row')} with cells, {counted(formulas, 'formula')}")
    if uncalculated:
        print(f"  {counted(uncalculated, 'formula')} without a stored value: never calculated")
    print_rows(shown, rows)
    if count > rows:
        print(f"  ... ({count - rows:,} more; dates are numbers of days since 1899-12-30)")


def column_number(reference, otherwise):
    letters = re.match(r"[A-Z]+", reference)
    if not letters:
        return otherwise
    number = 0
    for letter in letters.group():
        number = number * 26 + ord(letter) - 64
    return number - 1


def look_at_pdf(path, rows):
    print("kind: PDF document")
    text, pages = None, None
    if shutil.which("pdftotext"):
        done = subprocess.run(["pdftotext", "-layout", "-l", "50", os.path.abspath(path), "-"], capture_output=True,
                              timeout=120, check=False)
        if done.returncode:
            raise Unreadable("pdftotext says: " + done.stderr.decode("utf-8", "replace").strip())
        text = done.stdout.decode("utf-8", "replace")
    else:
        try:
            import pypdf
        except ImportError:
            raise Unreadable("neither pdftotext nor the Python module pypdf is here") from None
        try:
            reader = pypdf.PdfReader(path)
            pages = len(reader.pages)
            text = "\f".join(page.extract_text() or "" for page in itertools.islice(reader.pages, 50))
        except Exception as error:  # whatever a broken file makes of the module
            raise Unreadable(f"pypdf says: {error}") from error
    read = text.rstrip("\f").split("\f")
    empty = [str(number) for number, page in enumerate(read, 1) if not page.strip()]
    print("  " + counted(pages or len(read), "page") + (" or more" if len(read) == 50 and not pages else ""))
    if empty:
        print("  without text, so probably scanned or pictures: page " + short(", ".join(empty)))
    lines = [line.rstrip() for line in text.replace("\f", "\n").splitlines() if line.strip()]
    for line in lines[:rows]:
        print("  " + short(line))
    if len(lines) > rows:
        print("  ... (there is more)")


def look_at_sqlite(path, rows):
    print("kind: SQLite database")
    database = sqlite3.connect("file:" + urllib.parse.quote(os.path.abspath(path)) + "?mode=ro&immutable=1", uri=True)
    try:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for (name,) in tables:
            quoted = '"' + name.replace('"', '""') + '"'
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({quoted})")]
            count = database.execute(f"SELECT count(*) FROM {quoted}").fetchone()[0]
            print(f"table {short(name)}, {counted(count, 'row')}:")
            print_rows([columns, *database.execute(f"SELECT * FROM {quoted} LIMIT ?", (min(rows, 3),))], rows)
    finally:
        database.close()


def look_at_packed(path, start, rows):
    try:
        with tarfile.open(path) as archive:
            print("kind: TAR archive")
            entries = [(entry.name + (" (link)" if entry.issym() or entry.islnk() else ""), entry.size)
                       for entry in itertools.islice(archive, 10000)]
            print_entries(entries, rows)
            return
    except tarfile.ReadError:
        pass
    opener = gzip.open if start.startswith(b"\x1f\x8b") else bz2.open if start.startswith(b"BZh") else lzma.open
    with opener(path, "rb") as file:
        inner = file.read(SAMPLE)
    print("kind: a packed file; what is in it begins with:")
    encoding = encoding_of(inner, True)
    for line in itertools.islice(io.StringIO(inner.decode(encoding, "replace")), rows):
        print("  " + short(line.rstrip("\r\n")))


def print_entries(entries, rows):
    total = sum(size for _, size in entries)
    print(f"  entries: {len(entries):,}, {total:,} bytes unpacked")
    outside = [name for name, _ in entries
               if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name) or name[1:2] == ":"]
    if outside:
        print(f"  DO NOT UNPACK: entries that lead out of the folder: {len(outside):,}, such as {short(outside[0])}")
    for name, size in entries[:rows]:
        print(f"  {size:>12,}  {short(name)}")
    if len(entries) > rows:
        print(f"  ... ({len(entries) - rows:,} more)")


def print_rows(table, rows):
    for row in table[:rows]:
        print("  " + short(" | ".join(short(str(cell), 40) for cell in row)))


def counted(number, what):
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def short(text, width=WIDTH):
    """On one line, without what would change the terminal, and cut."""
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= width else text[:width - 4] + " ..."


if __name__ == "__main__":
    sys.exit(main())
