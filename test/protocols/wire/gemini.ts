// A gemini client's expectations of our streams and responses.
import assert from "node:assert/strict";
import { hasAll, isCount, wireEvents, type Ending } from "./events.ts";

const FINISH = ["STOP", "MAX_TOKENS", "SAFETY", "OTHER", "CONTINUATION", "MALFORMED_FUNCTION_CALL"];
/** Types of a part, each alone. Marks may be on it. */
const KINDS = ["text", "functionCall", "inlineData", "fileData", "executableCode"];
const MARKS = ["thought", "thoughtSignature"];
/** The one client that checks it only accepts bytes in this alphabet. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function checkStream(text: string, ending: Ending): void {
  assert.ok(!/^(?:event|id|:)/m.test(text), "nothing stands between chunks, and no chunk is named");
  const chunks = wireEvents(text).map(({ data }) => JSON.parse(data));
  if (ending === "failed") checkError(chunks.pop());
  const calls: string[] = [];
  chunks.forEach((chunk, i) => {
    const last = ending === "complete" && i === chunks.length - 1;
    checkChunk(chunk, calls);
    const { finishReason } = chunk.candidates[0];
    assert.equal(finishReason !== undefined, last, "the end is named in the last chunk alone");
    assert.equal("usageMetadata" in chunk, last, "and there the counts stand");
    if (last) checkEnd(finishReason, chunk.usageMetadata);
  });
}

export function checkWhole(answer: any): void {
  checkChunk(answer, []);
  checkEnd(answer.candidates[0].finishReason, answer.usageMetadata);
}

function checkChunk(chunk: any, calls: string[]): void {
  hasAll(chunk, ["candidates", "modelVersion", "responseId"], "a chunk");
  assert.equal(chunk.candidates.length, 1);
  const [{ content, index }] = chunk.candidates;
  assert.equal(index, 0);
  assert.equal(content.role, "model");
  for (const part of content.parts) {
    const kinds = Object.keys(part).filter((key) => !MARKS.includes(key));
    assert.equal(kinds.length, 1, `a part is one thing: ${JSON.stringify(part)}`);
    assert.ok(KINDS.includes(kinds[0]!), `part ${kinds[0]} is known`);
    if ("thoughtSignature" in part) assert.match(part.thoughtSignature, BASE64);
    if (part.functionCall) checkCall(part.functionCall, calls);
  }
}

function checkCall({ id, name, args }: any, calls: string[]): void {
  assert.ok(typeof id === "string" && id !== "" && !calls.includes(id), "each call has its id");
  assert.ok(typeof name === "string" && name !== "");
  assert.ok(typeof args === "object" && args !== null && !Array.isArray(args), "args: an object");
  calls.push(id);
}

function checkEnd(reason: unknown, usage: any): void {
  assert.ok(FINISH.includes(reason as string), `finishReason ${String(reason)}`);
  for (const [name, count] of Object.entries(usage)) {
    assert.ok(isCount(count), `${name} is a count`);
    if (name !== "totalTokenCount") assert.notEqual(count, 0, "a zero is left out");
  }
  const { promptTokenCount = 0, candidatesTokenCount = 0, thoughtsTokenCount = 0 } = usage;
  assert.equal(usage.totalTokenCount, promptTokenCount + candidatesTokenCount + thoughtsTokenCount);
  assert.ok((usage.cachedContentTokenCount ?? 0) <= promptTokenCount, "caches lie in the prompt");
}

export function checkError(body: any): void {
  hasAll(body.error, ["code", "message", "status", "details"], "an error");
  assert.equal(typeof body.error.code, "number");
  assert.match(body.error.status, /^[A-Z_]+$/);
  for (const detail of body.error.details)
    assert.match(detail["@type"], /^type\.googleapis\.com\/google\.rpc\.\w+$/);
}
