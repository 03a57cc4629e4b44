# An MCP server for the tests, without anything but a shell: two tools, of which `environment` tells what it was started with.
while read -r line; do
    rest=${line#*\"id\":}
    id=${rest%%[!0-9]*}
    case $line in
        *'"server/discover"'*)
            answer='"error":{"code":-32601,"message":"unknown"}'
            ;;
        *'"initialize"'*)
            echo 'tiny speaks' >&2
            answer='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}'
            ;;
        *'"tools/list"'*)
            schema='{"type":"object","properties":{"word":{"type":"string","description":"Which word."}}}'
            answer='"result":{"tools":[{"name":"environment","description":"Tells its environment.","inputSchema":'$schema'},'
            answer=$answer'{"name":"linger","description":"Leaves a process behind.","inputSchema":'$schema'}]}'
            ;;
        *'"environment"'*)
            text=
            for name in HOME GIVEN FOREWORD_API_KEY; do
                eval "value=\${$name-unset}"
                text="$text $name=$value"
            done
            answer='"result":{"content":[{"type":"text","text":"'$text'"}]}'
            ;;
        *'"linger"'*)
            # Nobody's child any more, in a session of its own where that can be had.
            (setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $! >"$1")
            answer='"result":{"content":[{"type":"text","text":"left"}]}'
            ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
