#!/bin/sh
# Checks the folder of a skill: name, front matter, sizes, links, executable bits.
#
# usage: check-skill.sh FOLDER
#
# Prints one line for each finding. Ends with 0 if there are no errors (there may be warnings), 1 if there are, and 2 if it
# was called wrongly. Needs the standard tools only.

set -u
LC_ALL=C
export LC_ALL

errors=0
warnings=0

error() {
    printf 'error    %s\n' "$*"
    errors=$((errors + 1))
}

warn() {
    printf 'warning  %s\n' "$*"
    warnings=$((warnings + 1))
}

if [ $# -ne 1 ]; then
    echo "usage: check-skill.sh FOLDER" >&2
    exit 2
fi
if [ ! -d "$1" ]; then
    echo "there is no folder \`$1\`" >&2
    exit 2
fi
folder=$(CDPATH='' cd -- "$1" && pwd) || exit 2
name=${folder##*/}
skill=$folder/SKILL.md
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# The name.
case $name in
    *[!a-z0-9-]* | -* | '') error "the folder is named \`$name\`: use a-z, 0-9 and -, beginning with a letter or digit" ;;
    *- | *--*) warn "the folder is named \`$name\`: some clients take single hyphens inside of a name only" ;;
esac
[ ${#name} -le 64 ] || error "the folder's name has ${#name} characters: 64 are allowed"

# What lies in the folder.
find "$folder" -type l >"$work/links"
while IFS= read -r path; do
    error "${path#"$folder"/} is a link: copy what it leads to"
done <"$work/links"
find "$folder" ! -type l ! -type f ! -type d >"$work/special"
while IFS= read -r path; do
    error "${path#"$folder"/} is neither a file nor a folder"
done <"$work/special"
count=$(find "$folder" ! -path "$folder" -print | wc -l)
count=$((count))
[ "$count" -le 2000 ] || error "there are $count files and folders: 2000 are allowed"
kib=$(du -sk "$folder" | cut -f1)
if [ "$kib" -gt 204800 ]; then
    error "the folder has $((kib / 1024)) MiB: 200 are allowed"
elif [ "$kib" -gt 10240 ]; then
    warn "the folder has $((kib / 1024)) MiB: does all of it have to be in the skill?"
fi
find "$folder" \( -name __pycache__ -o -name .git -o -name node_modules -o -name .venv -o -name .DS_Store -o -name '.env' \
    -o -name '*.pem' -o -name '*.key' -o -name 'id_rsa*' \) -prune -print >"$work/leftovers"
while IFS= read -r path; do
    warn "${path#"$folder"/} does not belong into a skill"
done <"$work/leftovers"
find "$folder" -type f ! -perm -100 >"$work/files"
while IFS= read -r path; do
    if [ "$(head -c 2 "$path" | tr '\000' ' ')" = '#!' ]; then
        warn "${path#"$folder"/} begins with #! but is not executable: chmod +x"
    fi
done <"$work/files"

# SKILL.md: `open` and `close` are the lines of the two rows of hyphens.
if [ ! -f "$skill" ]; then
    error "there is no SKILL.md in the folder itself"
else
    tr -d '\r' <"$skill" >"$work/text"
    [ "$(wc -c <"$skill")" -le 1048576 ] || error "SKILL.md has more than 1 MiB"
    lines=$(wc -l <"$work/text")
    lines=$((lines))
    [ "$lines" -le 500 ] || warn "SKILL.md has $lines lines: move what is not needed each time into references/"
    [ "$(head -c 3 "$skill")" != "$(printf '\357\273\277')" ] || warn "SKILL.md begins with a byte order mark"
    close=$(awk 'NR == 1 && !/^(\357\273\277)?---[ \t]*$/ { exit } NR > 1 && /^---[ \t]*$/ { print NR; exit }' "$work/text")
    if [ -z "$close" ]; then
        error "SKILL.md has to begin with the front matter: a line ---, name and description, a line ---"
    else
        sed -n "2,$((close - 1))p" "$work/text" >"$work/front"
        sed "1,${close}d" "$work/text" >"$work/body"
        grep -q '[^[:space:]]' "$work/body" || error "SKILL.md has no text after its front matter"

        # The value of a key on the first level: on its line, or folded on the indented lines that follow.
        value() {
            awk -v key="$1" '
                index($0, key ":") == 1 {
                    found = 1
                    line = substr($0, length(key) + 2)
                    sub(/^[ \t]+/, "", line); sub(/[ \t]+$/, "", line)
                    if (line !~ /^[>|][-+0-9]*$/) value = line
                    next
                }
                found && /^[ \t]/ { sub(/^[ \t]+/, ""); sub(/[ \t]+$/, ""); value = value (value == "" ? "" : " ") $0; next }
                found && /^$/ { next }
                found { exit }
                END { print value }
            ' "$work/front"
        }
        unquoted() {
            printf '%s\n' "$1" | sed -e 's/^"\(.*\)"$/\1/' -e "s/^'\\(.*\\)'\$/\\1/"
        }

        given=$(unquoted "$(value name)")
        if [ -z "$given" ]; then
            error "the front matter has no name"
        elif [ "$given" != "$name" ]; then
            error "the front matter says name: $given, but the folder is named $name"
        fi

        description=$(unquoted "$(value description)")
        # Characters are counted by the bytes that begin one.
        length=$(printf '%s' "$description" | tr -d '\200-\277' | wc -c)
        length=$((length))
        if [ "$length" -eq 0 ]; then
            error "the front matter has no description"
        elif [ "$length" -gt 1024 ]; then
            error "the description has $length characters: 1024 are allowed"
        elif [ "$length" -gt 300 ]; then
            warn "the description has $length characters: what follows the first 300 is not shown in the prompt"
        elif [ "$length" -lt 40 ]; then
            warn "the description has $length characters: say what the skill does and when to use it"
        fi

        for key in name description; do
            line=$(sed -n "s/^$key:[[:space:]]*//p" "$work/front" | head -n 1)
            case $line in
                \"* | \'* | '>'* | '|'*) ;;
                *': '* | *' #'* | *:) error "$key is no valid YAML: put it into quotes, or below \`$key: >-\`, indented" ;;
            esac
        done
        if grep -q "$(printf '^ *\t')" "$work/front"; then
            error "the front matter is indented with tabs, which YAML does not allow"
        fi
        # Links to files of the skill that are not there.
        grep -o '](\([^):]*\))' "$work/body" | sed -e 's/^](//' -e 's/)$//' -e 's/[#?].*//' | sort -u >"$work/targets"
        while IFS= read -r target; do
            case $target in
                '' | /*) continue ;;
            esac
            [ -e "$folder/$target" ] || warn "SKILL.md links to $target, which is not there"
        done <"$work/targets"
    fi
fi

if [ "$errors" -eq 0 ]; then
    printf 'ok       %s: errors: 0, warnings: %s\n' "$name" "$warnings"
else
    printf 'failed   %s: errors: %s, warnings: %s\n' "$name" "$errors" "$warnings"
    exit 1
fi
