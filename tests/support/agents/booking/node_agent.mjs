// An agent in Node whose tools are HTTP requests: `node node_agent.mjs BASE`; any error ends it.
const base = process.argv[2]
const paths = { get_slots: '/slots', get_bookings: '/bookings', book_slot: '/bookings' }
const headers = { 'content-type': 'application/json' }

async function callTool(name, argumentsText) {
  const options = name === 'book_slot' ? { method: 'POST', headers, body: argumentsText } : {}
  const answer = await fetch(base + paths[name], options)
  if (!answer.ok) throw new Error(`status ${answer.status}`)
  return answer.text()
}

const tools = Object.keys(paths).map((name) => ({ type: 'function', function: { name, parameters: {} } }))
const messages = [{ role: 'user', content: 'Book Ana the first free slot.' }]
for (;;) {
  const body = JSON.stringify({ model: 'clinic-1', messages, tools })
  const answer = await fetch(`${base}/v1/chat/completions`, { method: 'POST', headers, body })
  const { message } = (await answer.json()).choices[0]
  messages.push(message)
  if (!message.tool_calls) {
    console.log(message.content)
    break
  }
  for (const call of message.tool_calls) {
    const content = await callTool(call.function.name, call.function.arguments)
    messages.push({ role: 'tool', tool_call_id: call.id, content })
  }
}
