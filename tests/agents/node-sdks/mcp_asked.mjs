// An agent whose MCP server asks it back: node mcp_asked.mjs MODEL TOOLS URL, or the command's words.
// TOOLS are called in order, as tasks if the server requires that.

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema
} from '@modelcontextprotocol/sdk/types.js'

const [model, names, first, ...args] = process.argv.slice(2)

async function chat(messages, tools) {
  const functions = tools.map(({ name }) => ({ type: 'function', function: { name, parameters: {} } }))
  const answer = await fetch(`${model}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer x' },
    body: JSON.stringify({ model: 'm', messages, ...(tools.length ? { tools: functions } : {}) })
  })
  return (await answer.json()).choices[0].message
}

const transport = first.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(first))
  : new StdioClientTransport({ command: first, args, env: process.env })
const client = new Client({ name: 'asked', version: '1' }, {
  capabilities: { sampling: {}, elicitation: {}, roots: {} }
})
client.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => {
  const { content } = await chat([{ role: 'user', content: `sampling ${params.messages.length}` }], [])
  return { role: 'assistant', model: 'm', content: { type: 'text', text: content } }
})
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  const wanted = params.requestedSchema.properties.interpretation
  const content = wanted ? { interpretation: wanted.oneOf[0].const } : { name: 'Ada' }
  return { action: 'accept', content }
})
client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: 'file:///desk', name: 'w' }] }))
await client.connect(transport)
const { tools } = await client.listTools()
const messages = [{ role: 'user', content: `Report the amount by ${names.split(',').join(', ')}.` }]
let said = await chat(messages, tools)
while (said.tool_calls) {
  const [call] = said.tool_calls
  const tool = tools.find(({ name }) => name === call.function.name)
  const asked = { name: tool.name, arguments: JSON.parse(call.function.arguments) }
  let result
  if (tool.execution?.taskSupport === 'required') {
    const stream = client.experimental.tasks.callToolStream(asked, CallToolResultSchema)
    for await (const message of stream) {
      if (message.type === 'result') result = message.result
      if (message.type === 'error') throw message.error
    }
  } else {
    result = await client.callTool(asked)
  }
  const content = result.content.map(({ text }) => text).join('\n')
  messages.push(said, { role: 'tool', tool_call_id: call.id, content })
  said = await chat(messages, tools)
}
console.log(said.content)
await client.close()
