// Routes plain Node programs through the proxy in HTTPS_PROXY or HTTP_PROXY: Node 20 has no
// option for it. Loaded with NODE_OPTIONS=--import before the program's first line.
//
// fetch: undici is part of Node but cannot be imported; its Agent class is that of the global
// dispatcher, which is stored under a well-known symbol once undici is loaded. node:http and
// node:https: every Agent opens its connections through a method of its prototype. Programs with
// a dispatcher or agent that has a proxy keep theirs. node:http2 (AWS's SDK) wants a socket at once:
// what it writes waits until the tunnel is open. All connections use CONNECT.
//
// Stdio MCP servers that a library starts (its transport is on the stack) get the run's tee.

import childProcess from 'node:child_process'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import path from 'node:path'
import { Duplex } from 'node:stream'
import tls from 'node:tls'
import { fileURLToPath } from 'node:url'

const env = process.env
const named = env.HTTPS_PROXY || env.https_proxy || env.HTTP_PROXY || env.http_proxy

const run = env.STUMBLE_RUN
const python = env.STUMBLE_PYTHON

if (run && python) {
  const tee = fileURLToPath(new URL('../mcp/tee.py', import.meta.url))
  const transport = /StdioClientTransport|StdioMCPTransport|@modelcontextprotocol/
  const interpreter = /^(python|node|npx|npm|uvx|uv|bun|deno)/

  const nameServer = (command, args) => {
    const program = path.basename(command)
    const plain = args.find((word) => !word.startsWith('-'))
    if (!interpreter.test(program) || !plain) return program
    return path.basename(plain).replace(/\.(py|[cm]?js|ts)$/, '') || program
  }

  const isServer = (command, args, options) => {
    const stdio = options?.stdio ?? 'pipe'
    const [input, output] = Array.isArray(stdio) ? stdio : [stdio, stdio]
    const piped = input === 'pipe' && output === 'pipe' && !options?.shell
    const called = [path.basename(command), ...args]
    const begin = called.slice(0, 4).indexOf('-m') + 1
    const stub = called[begin] === 'stumble' && called[begin + 1] === 'mcp'
    if (!piped || stub || args.includes(tee)) return false
    const kept = Error.stackTraceLimit
    Error.stackTraceLimit = 30
    const { stack } = new Error()
    Error.stackTraceLimit = kept
    return transport.test(stack)
  }

  const start = childProcess.spawn
  childProcess.spawn = function spawn(command, args, options) {
    const words = Array.isArray(args) ? args : []
    const chosen = Array.isArray(args) ? options : args
    if (!isServer(command, words, chosen)) return start.call(this, command, args, options)
    const name = nameServer(command, words)
    const behind = ['-I', '-S', tee, '--name', name, '--run', run, '--', command, ...words]
    return start.call(this, python, behind, chosen)
  }
  syncBuiltinESMExports()
}

if (named) {
  const proxy = new URL(named)
  const host = proxy.hostname.replace(/^\[|\]$/g, '')
  const port = Number(proxy.port || 80)

  const tunnel = (to, toPort, made) => {
    const authority = net.isIPv6(to) ? `[${to}]:${toPort}` : `${to}:${toPort}`
    const request = http.request({
      method: 'CONNECT',
      path: authority,
      headers: { host: authority },
      createConnection: () => net.connect(port, host),
    })
    request.once('error', made)
    request.once('connect', (response, socket) => {
      request.off('error', made)
      if (response.statusCode === 200) return made(null, socket)
      socket.destroy()
      made(new Error(`the proxy answered ${response.statusCode}`))
    })
    request.end()
  }

  const encrypt = (options, made) => {
    const socket = tls.connect(options)
    socket.once('error', made)
    socket.once('secureConnect', () => {
      socket.off('error', made)
      made(null, socket)
    })
  }

  for (const [module, secure] of [[http, false], [https, true]]) {
    const direct = module.Agent.prototype.createConnection
    module.Agent.prototype.createConnection = function (options, made) {
      const to = options.host || 'localhost'
      const toPort = Number(options.port || (secure ? 443 : 80))
      const itself = toPort === port && [host, 'localhost'].includes(to)
      if (options.socketPath || itself || !made) return direct.call(this, options, made)
      tunnel(to, toPort, (error, socket) => {
        if (error || !secure) return made(error, socket)
        encrypt({ ...options, socket }, made)
      })
    }
  }

  const tunnelLater = (to, toPort) => {
    let socket = null
    let write = null
    const later = new Duplex({
      read: () => socket?.resume(),
      write: (data, _, done) => {
        if (socket) socket.write(data, done)
        else write = () => socket.write(data, done)
      },
      final: (done) => (socket ? socket.end(done) : done()),
      destroy: (error, done) => {
        socket?.destroy()
        done(error)
      },
    })
    tunnel(to, toPort, (error, opened) => {
      if (error || later.destroyed) {
        opened?.destroy()
        return later.destroy(error)
      }
      socket = opened
      socket.setNoDelay(true)
      socket.on('data', (data) => later.push(data) || socket.pause())
      socket.once('end', () => later.push(null))
      socket.once('error', (failed) => later.destroy(failed))
      socket.once('close', () => later.destroy())
      write?.()
    })
    return later
  }

  const session = http2.connect
  http2.connect = function connect(authority, options, listener) {
    if (typeof options === 'function') return http2.connect.call(this, authority, {}, options)
    if (options?.createConnection) return session.call(this, authority, options, listener)
    const { protocol, hostname, host: name, port: toPort } =
      typeof authority === 'string' ? new URL(authority) : authority
    const to = (hostname || name || 'localhost').replace(/^\[|\]$/g, '')
    const secure = (protocol || options?.protocol || 'https:') === 'https:'
    const createConnection = () => {
      const socket = tunnelLater(to, Number(toPort || (secure ? 443 : 80)))
      if (!secure) return socket
      const servername = net.isIP(to) ? '' : to
      return tls.connect({ ALPNProtocols: ['h2'], servername, ...options, host: to, socket })
    }
    return session.call(this, authority, { ...options, createConnection }, listener)
  }
  syncBuiltinESMExports()

  const dispatcher = Symbol.for('undici.globalDispatcher.1')
  const connect = ({ hostname, protocol, port: toPort, servername }, made) => {
    const to = hostname.replace(/^\[|\]$/g, '')
    const secure = protocol === 'https:'
    tunnel(to, Number(toPort || (secure ? 443 : 80)), (error, socket) => {
      if (error) return made(error)
      socket.setNoDelay(true)
      if (!secure) return made(null, socket)
      const name = servername || (net.isIP(to) ? '' : to)
      encrypt({ host: to, servername: name, ALPNProtocols: ['http/1.1'], socket }, made)
    })
  }

  const direct = globalThis.fetch
  let led = null
  globalThis.fetch = function fetch(...given) {
    void globalThis.Headers // loads undici, but not before the program needs it
    const current = globalThis[dispatcher]
    if (current !== led && current?.constructor.name === 'Agent') {
      led = globalThis[dispatcher] = new current.constructor({ connect })
    }
    return direct.apply(this, given)
  }
}
