// `@modelcontextprotocol/sdk` 1.x: the `initialize` handshake over HTTP.

import { load, serve } from "./adapter.mjs";

const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");

await serve(async ({ url, headers }) => {
  const client = new Client({ name: "foreword-peers", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport);
  try {
    const { tools } = await client.listTools();
    const { content } = await client.callTool({ name: "read_me", arguments: {} });
    return {
      protocol: transport.protocolVersion,
      instructions: client.getInstructions(),
      tools: tools.map((tool) => tool.name),
      read_me: content[0].text,
    };
  } finally {
    await client.close();
  }
});
