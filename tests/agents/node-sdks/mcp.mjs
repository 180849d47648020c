// A client of server-everything: node mcp.mjs URL, or the words of its command.

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const [first, ...args] = process.argv.slice(2)
const transport = first.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(first))
  : new StdioClientTransport({ command: first, args, env: process.env })
const client = new Client({ name: 'everything', version: '1' })
await client.connect(transport)
const { tools } = await client.listTools()
const echoed = await client.callTool({ name: 'echo', arguments: { message: 'hello' } })
const sum = await client.callTool({ name: 'get-sum', arguments: { a: 23, b: 42 } })
const texts = [...echoed.content, ...sum.content].map((part) => part.text)
console.log(JSON.stringify([tools.some((tool) => tool.name === 'get-sum'), ...texts]))
await client.close()
