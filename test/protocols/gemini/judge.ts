// Requests that the documented API rejects with 400. A fake upstream checks every request.
import assert from "node:assert/strict";

const TOP = new Set(
  "contents systemInstruction tools toolConfig generationConfig safetySettings safety_settings serviceTier generateContentRequest".split(
    " ",
  ),
);

/** `model`: those before the third generation need no signatures. */
export function judged(body: any, model = ""): void {
  const asked = body.generateContentRequest ?? body;
  for (const field in body) assert.ok(TOP.has(field), `Unknown name "${field}"`);
  const { contents } = asked;
  assert.ok(contents.length > 0, "contents is not specified");
  assert.equal(contents[0].role, "user", "the first turn is the user's");
  contents.forEach(({ role, parts }: any, i: number) => {
    assert.ok(["user", "model"].includes(role), `role ${role}`);
    assert.notEqual(role, contents[i - 1]?.role, "roles take turns");
    assert.ok(parts.length > 0, "a turn has parts");
    for (const part of parts) checkPart(part);
    if (role === "model")
      checkStep(parts, contents[i + 1]?.parts ?? [], !/gemini-2|gemma/.test(model));
  });
  const config = asked.generationConfig ?? {};
  const { thinkingBudget, thinkingLevel } = config.thinkingConfig ?? {};
  assert.ok(thinkingBudget === undefined || thinkingLevel === undefined, "budget or level");
  assert.ok((config.stopSequences?.length ?? 0) <= 5, "five stop sequences");
  const declared = (asked.tools ?? []).filter((tool: any) => tool.functionDeclarations);
  assert.ok(declared.length <= 1, "all functions in one tool");
  const names = declared.flatMap((tool: any) => tool.functionDeclarations.map((f: any) => f.name));
  assert.equal(new Set(names).size, names.length, "Duplicate function declaration");
  for (const name of names) assert.match(name, /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/);
}

/** Each part has one kind of data, and text is not empty unless it is signed. */
function checkPart(part: any): void {
  const kinds = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];
  assert.equal(kinds.filter((kind) => kind in part).length, 1, JSON.stringify(part));
  if ("text" in part) assert.ok(part.text !== "" || part.thoughtSignature, "empty text");
  const object = part.functionCall?.args ?? part.functionResponse?.response ?? {};
  assert.ok(typeof object === "object" && !Array.isArray(object), "a Struct");
}

/** A step of calls is signed at its first call, and answered in the next turn, one by one. */
function checkStep(parts: any[], next: any[], signed: boolean): void {
  const calls = parts.filter((part) => part.functionCall);
  if (calls.length === 0) return;
  if (signed) assert.ok(calls[0].thoughtSignature, "Function call is missing a thought_signature");
  const results = next.filter((part) => part.functionResponse);
  assert.equal(results.length, calls.length, "as many responses as calls");
  assert.deepEqual(
    results.map((part) => part.functionResponse.name),
    calls.map((part) => part.functionCall.name),
  );
  const first = next.findIndex((part) => !part.functionResponse);
  assert.ok(first < 0 || first >= results.length, "responses come first");
}
