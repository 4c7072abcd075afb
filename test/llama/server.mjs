// llama.cpp behind the part of llama-server's protocol that the bot uses.
// Prompts are made by llama.cpp from the model's own chat template, and read
// into one sequence whose cache is kept between requests. The model is random,
// so that a grammar makes words of what it says.
//
//   node server.mjs MODEL.gguf CONTEXT
//
// Descriptor 3 gets one JSON object a line: first {url}, then {prompt,
// evaluated} or {refused} of each request, in tokens as llama.cpp counts them.
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { randomBytes } from 'node:crypto'
import { writeSync } from 'node:fs'

const { LlamaContext } = createRequire(import.meta.url)('@fugood/node-llama-linux-x64')
const [model, context] = [process.argv[2], Number(process.argv[3])]
const llama = new LlamaContext({ model, n_ctx: context, n_threads: 1, ctx_shift: false })
const trained = Number(llama.getModelInfo().metadata['llama.context_length'])
const words = 'root ::= [a-z]{2,8} (" " [a-z]{2,8}){3,5} "."'

const tell = (line) => writeSync(3, JSON.stringify(line) + '\n')

class Refusal extends Error {
  constructor(code, type, message, more) {
    super(message)
    this.body = { error: { code, message, type, ...more } }
  }
}

// format makes the prompt of a request, and the grammar that binds its answer.
function format(body) {
  const args = Object.fromEntries(Object.entries(body.chat_template_kwargs ?? {}).map(([k, v]) => [k, JSON.stringify(v)]))
  try {
    return llama.getFormattedChat(body.messages, undefined, { tools: body.tools, tool_choice: body.tool_choice ?? 'auto',
      response_format: body.response_format, chat_template_kwargs: args, enable_thinking: true })
  } catch (e) { // llama-server takes a template's refusal for an invalid request
    throw new Refusal(400, 'invalid_request_error', e.message)
  }
}

// called is the call that a person asks for with "call NAME {…}": a random model
// makes none. Its id is of the form that llama-server gives.
function called(body) {
  const last = body.messages.at(-1)
  const [, name, args] = (last.role === 'user' && /^call (\w+) (\{.*\})$/m.exec(last.content)) || []
  return name && [{ index: 0, id: randomBytes(16).toString('hex'), type: 'function', function: { name, arguments: args } }]
}

async function complete(body) {
  const { prompt, grammar } = format(body)
  const { length } = (await llama.tokenize(prompt)).tokens
  if (length >= context) {
    throw new Refusal(400, 'exceed_context_size_error',
      `request (${length} tokens) exceeds the available context size (${context} tokens), try increasing it`,
      { n_prompt_tokens: length, n_ctx: context })
  }
  const r = await llama.completion({ prompt, grammar: body.response_format ? grammar : words, seed: length,
    temperature: body.temperature ?? 0.8, n_predict: Math.min(body.max_tokens ?? 200, 200) }, () => {})
  const evaluated = r.timings.prompt_n
  tell({ prompt: length, evaluated })
  const calls = called(body)
  return {
    message: { role: 'assistant', content: calls ? null : r.text, tool_calls: calls },
    finish: calls ? 'tool_calls' : r.stopped_eos ? 'stop' : 'length',
    usage: { prompt_tokens: length, completion_tokens: r.tokens_predicted, total_tokens: length + r.tokens_predicted,
      prompt_tokens_details: { cached_tokens: length - evaluated } },
    timings: { cache_n: length - evaluated, ...r.timings },
  }
}

let turn = Promise.resolve() // one sequence: one request after the other

async function chat(body, response) {
  const answer = turn.then(() => complete(body))
  turn = answer.catch(() => {})
  const { message, finish, usage, timings } = await answer
  const head = { id: 'chatcmpl-1', created: 0, model: body.model }
  if (!body.stream) {
    const choices = [{ index: 0, message, finish_reason: finish }]
    return reply(response, 200, { ...head, object: 'chat.completion', choices, usage, timings })
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (delta, finish_reason, more) => {
    const choices = delta ? [{ index: 0, delta, finish_reason }] : []
    response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`)
  }
  send({ role: 'assistant', content: null }, null)
  for (const content of message.content?.match(/\S+\s*/g) ?? []) send({ content }, null)
  for (const t of message.tool_calls ?? []) send({ tool_calls: [t] }, null)
  send({}, finish, body.stream_options?.include_usage ? {} : { timings })
  if (body.stream_options?.include_usage) send(undefined, null, { usage, timings })
  response.end('data: [DONE]\n\n')
}

function reply(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function answer(request, response) {
  const { pathname } = new URL(request.url, 'http://localhost')
  if (pathname === '/props') {
    return reply(response, 200, { default_generation_settings: { n_ctx: context }, total_slots: 1, model_path: model,
      modalities: { vision: false, audio: false }, build_info: 'b10257-22dc605c4' })
  }
  if (pathname === '/v1/models') {
    return reply(response, 200, { object: 'list',
      data: [{ id: model, object: 'model', owned_by: 'llamacpp', meta: { n_ctx_train: trained } }] })
  }
  if (pathname !== '/v1/chat/completions') throw new Refusal(404, 'not_found_error', 'File Not Found')
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += part
  await chat(JSON.parse(text), response)
}

const server = createServer((request, response) => answer(request, response).catch((e) => {
  const body = e.body ?? { error: { code: 500, message: e.message, type: 'server_error' } }
  if (body.error.code !== 404) tell({ refused: body.error.message })
  reply(response, body.error.code, body)
}))
server.listen(0, '127.0.0.1', () => tell({ url: `http://127.0.0.1:${server.address().port}` }))
process.stdin.on('end', () => process.exit()).resume()
