// Plain programs on Node SDKs with a tool `bash`: node bash.mjs API MODEL PROMPT.
//
// Each works until the model calls no tool, and prints its last words. What a model asks for
// together is run at once.

import { exec } from 'node:child_process'

const description = 'Run a command in a shell.'
const parameters = {
  type: 'object',
  properties: { command: { type: 'string' } },
  required: ['command'],
}

const bash = ({ command }) =>
  new Promise((done) => {
    exec(`exec 2>&1; ${command}`, { timeout: 60000 }, (error, output) => {
      done(JSON.stringify({ returncode: error ? error.code : 0, output }))
    })
  })

const openai = async (model, prompt) => {
  const { default: OpenAI } = await import('openai')
  const client = new OpenAI()
  const tools = [{ type: 'function', function: { name: 'bash', description, parameters } }]
  const messages = [{ role: 'user', content: prompt }]
  for (;;) {
    const stream = client.chat.completions.stream({ model, messages, tools })
    const said = (await stream.finalChatCompletion()).choices[0].message
    if (!said.tool_calls?.length) return said.content
    const { content, tool_calls } = said
    messages.push({ role: 'assistant', content, tool_calls })
    const run = (call) => bash(JSON.parse(call.function.arguments))
    const results = await Promise.all(tool_calls.map(run))
    results.forEach((result, nth) => {
      messages.push({ role: 'tool', tool_call_id: tool_calls[nth].id, content: result })
    })
  }
}

const anthropic = async (model, prompt) => {
  const { default: Anthropic } = await import('@anthropic-ai/sdk')
  const client = new Anthropic()
  const tools = [{ name: 'bash', description, input_schema: parameters }]
  const messages = [{ role: 'user', content: prompt }]
  for (;;) {
    const said = await client.messages.create({ model, max_tokens: 4096, messages, tools })
    const calls = said.content.filter((block) => block.type === 'tool_use')
    if (!calls.length) return said.content.map((block) => block.text).join('')
    const results = await Promise.all(calls.map((call) => bash(call.input)))
    const told = results.map((content, nth) => {
      return { type: 'tool_result', tool_use_id: calls[nth].id, content }
    })
    messages.push({ role: 'assistant', content: said.content }, { role: 'user', content: told })
  }
}

const ai = async (model, prompt) => {
  const { generateText, jsonSchema, stepCountIs, tool } = await import('ai')
  const { openai: provider } = await import('@ai-sdk/openai')
  const tools = { bash: tool({ description, inputSchema: jsonSchema(parameters), execute: bash }) }
  const asked = { model: provider(model), prompt, tools, stopWhen: stepCountIs(30) }
  return (await generateText(asked)).text
}

const [api, model, prompt] = process.argv.slice(2)
console.log(await { openai, anthropic, ai }[api](model, prompt))
