#!/bin/sh
# Sums the column `amount` of a CSV file by region, the largest first, and the total at the end.
# Lines that cannot be read are named on standard error and left out.
set -eu

file=${1:?usage: by-region.sh FILE}
[ "$(head -n 1 "$file" | tr -d '\r')" = 'date,region,amount' ] || {
    echo "$file: the first line is not date,region,amount" >&2
    exit 1
}
echo 'region,amount'
tail -n +2 "$file" | tr -d '\r' | awk -F , '
    NF == 0 { next }
    NF != 3 || $3 !~ /^-?[0-9]+(\.[0-9]+)?$/ { print "line " NR + 1 " cannot be read: " $0 > "/dev/stderr"; next }
    { sum[$2] += $3 }
    END { for (region in sum) printf "%s,%.2f\n", region, sum[region] }
' | LC_ALL=C sort -t , -k 2,2nr -k 1,1 | awk -F , '
    { print; total += $2 }
    END { printf "total,%.2f\n", total }
'
