// Programs on Node frameworks with a tool `bash`: node bash.mjs FRAMEWORK MODEL PROMPT.
//
// The framework has the loop; here is only what its user must write. The last words are printed.

import { exec } from 'node:child_process'
import { z } from 'zod'

const description = 'Run a command in a shell.'
const schema = z.object({ command: z.string() })

const bash = ({ command }) =>
  new Promise((done) => {
    exec(`exec 2>&1; ${command}`, { timeout: 60000 }, (error, output) => {
      done(JSON.stringify({ returncode: error ? error.code : 0, output }))
    })
  })

const langchain = async (model, prompt) => {
  const { createAgent, tool } = await import('langchain')
  const { ChatOpenAI } = await import('@langchain/openai')
  const tools = [tool(bash, { name: 'bash', description, schema })]
  const agent = createAgent({ model: new ChatOpenAI({ model }), tools })
  const { messages } = await agent.invoke({ messages: prompt }, { recursionLimit: 60 })
  return messages.at(-1).text
}

const mastra = async (model, prompt) => {
  const { Agent } = await import('@mastra/core/agent')
  const { createTool } = await import('@mastra/core/tools')
  const shell = createTool({ id: 'bash', description, inputSchema: schema, execute: bash })
  const about = { id: 'worker', name: 'worker', instructions: 'Do what is asked.' }
  const agent = new Agent({ ...about, model: `openai/${model}`, tools: { bash: shell } })
  return (await agent.generate(prompt, { maxSteps: 30 })).text
}

const [framework, model, prompt] = process.argv.slice(2)
console.log(await { langchain, mastra }[framework](model, prompt))
