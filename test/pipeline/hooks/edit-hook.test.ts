// A hook that replaces fields of the client: the outgoing request equals the one that the client
// could have sent, and forbidden fields are not sent.
import { describe, expect, it } from "vitest";
import { fail, type Body, type Hooks } from "tollgate/plugin";
import { jsonResponse, say, startUpstream } from "tollgate/testing";
import { inAny } from "../../protocols/gemini/speech.ts";
import { startTestServices, type TestServicesOptions } from "../../kit/test-services.ts";
import { CLIENTS, isImage, ROADS, TARGETS } from "../protocol-pairs.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const other = { role: "user", content: "Said by a template: ☕" };
/** Another conversation, an output limit, an unknown field, and a removed one. */
const EDITS: { readonly [client: string]: readonly Body[] } = {
  "chat-completions": [
    { messages: [other] },
    { max_completion_tokens: 7 },
    { tools: [{ type: "function", function: { name: "go", parameters: { type: "object" } } }] },
    { user: "u", x_new: { a: [1] } },
    { temperature: undefined },
  ],
  messages: [
    { messages: [other], system: "Be brief." },
    { max_tokens: 7 },
    { temperature: undefined },
  ],
  responses: [{ input: "Said by a template" }, { instructions: "Be brief." }],
  gemini: [
    { contents: [{ role: "user", parts: [{ text: "Said by a template" }] }] },
    { generationConfig: { maxOutputTokens: 7 } },
  ],
  images: [{ prompt: "Another gate" }, { size: "1024x1024" }, { quality: "high" }],
};

async function sent(from: string, into: string, body: object, edit?: Hooks["edit"]) {
  await using up = await startUpstream({
    "POST /*": (asked) =>
      inAny(say("Hello"), asked) ?? jsonResponse({ error: { message: "no" } }, 400),
  });
  let features: readonly string[] = [];
  const of: TestServicesOptions = {
    frontend: CLIENTS[from]!.protocol,
    providers: {
      p: {
        endpoints: [{ protocol: TARGETS[into]!, base: `${up.url}/v1`, auth: "none" }],
        stateMode: "relay",
        ...(isImage(into) && {
          facts: new Map([["m", { operation: "image" as const }]]),
          listModels: async () => [{ model: "m", operation: "image" as const }],
        }),
      } as never,
    },
    hooks: [{ ...(edit && { edit }) }, { inspect: (_request, x) => void (features = x.features) }],
  };
  await using at = await startTestServices(of);
  const got = await at.ask({ model: "p/m", ...CLIENTS[from]!.least, ...body });
  await got.text();
  const reserve = (at.journal as readonly any[]).find((row) => row.do === "reserve");
  return {
    status: got.status,
    asked: up.requests.map((one) => [one.path, one.json()]),
    features,
    lane: reserve?.clientRequest.mode,
    hold: reserve?.limits,
  };
}

describe.each(ROADS)("from %s into %s", (from, into) => {
  it("the outgoing request equals the one that a client could have sent", async () => {
    for (const fields of EDITS[from]!) {
      const before = { temperature: 0.5 };
      const itself = await sent(from, into, { ...before, ...fields });
      const edited = await sent(from, into, before, () => fields);
      expect(edited).toEqual(itself);
      const later = await sent(from, into, before, async () => fields);
      expect(later).toEqual(itself);
    }
  });
});

const up = () =>
  startUpstream({
    "POST /*": jsonResponse({
      id: "u",
      model: "m",
      say: "Hello",
      usage: { input: 1, output: 1 },
      end: "stop",
    } as never),
  });
const toyScene = (
  url: string,
  hooks: TestServicesOptions["hooks"],
  more: Partial<TestServicesOptions> = {},
): TestServicesOptions => ({
  frontend: createToyProtocol(),
  providers: { p: { endpoints: [{ protocol: createToyProtocol(), base: url, auth: "none" }] } },
  hooks: hooks!,
  ...more,
});

it("each hook sees the result of the previous one, and so do later hooks", async () => {
  const seen: unknown[] = [];
  await using to = await up();
  await using at = await startTestServices(
    toyScene(to.url, [
      {
        admit: async (x) => void (await x.readBody()).request,
        edit: ({ body }) => ({ text: `${body["text"]} one` }),
      },
      {
        edit: ({ body }) => ({ text: `${body["text"]} two`, big: 2 }),
        inspect: (request, { body, inputSize }) =>
          void seen.push((request as any).turns[0].blocks[0].text, body["big"], inputSize.bytes),
      },
    ]),
  );
  await at.ask({ model: "p/m", text: "hi", big: 1 });
  expect(to.requests[0]!.json()).toEqual({ model: "m", text: "hi one two", big: 2 });
  expect(seen.slice(0, 2)).toEqual(["hi one two", 2]);
});

it.each([
  ["another model", { model: "p/dear" }],
  ["another manner", { stream: true }],
  ["no body", ["text"]],
  ["what its protocol refuses", { text: 7 }],
  ["a field that is gone and is needed", { text: undefined }],
  ["what cannot be sent", { more: () => 1 }],
])("%s is a failure of the hook, and the operator may ignore it", async (_what, fields) => {
  await using to = await up();
  const edit = () => fields as Body;
  await using at = await startTestServices(toyScene(to.url, [{ id: "templates", edit }]));
  const refused = await at.ask({ model: "p/m", text: "hi" });
  expect([refused.status, await refused.text()]).toEqual([
    500,
    expect.stringContaining("templates failed (edit)"),
  ]);
  expect(to.requests).toEqual([]);
  await using passing = await startTestServices(toyScene(to.url, [{ edit, onError: "continue" }]));
  expect((await passing.ask({ model: "p/m", text: "hi" })).status).toBe(200);
  expect(to.requests[0]!.json()).toEqual({ model: "m", text: "hi" });
});

it("a refusal is a rejection, and the hook is not called for a stored object", async () => {
  await using to = await up();
  const edit = () => fail("forbidden", "No template of that name.", { code: "template" });
  await using at = await startTestServices(toyScene(to.url, [{ edit, onError: "continue" }]));
  const refused = await at.ask({ model: "p/m", text: "hi" });
  expect([refused.status, await refused.json()]).toMatchObject([
    403,
    { error: "No template of that name." },
  ]);
});

it("under privacy, a hook cannot add stored content that a client may not use", async () => {
  for (const [from, fields] of [
    ["chat-completions", { store: true }],
    ["responses", { store: true }],
    ["responses", { previous_response_id: "resp_1" }],
  ] as const) {
    await using to = await startUpstream({
      "POST /*": (asked) => inAny(say("Hello"), asked) ?? jsonResponse({}, 400),
    });
    await using at = await startTestServices({
      frontend: CLIENTS[from]!.protocol,
      providers: {
        p: { endpoints: [{ protocol: TARGETS[from]!, base: `${to.url}/v1`, auth: "none" }] },
      },
      hooks: [{ admit: (x) => x.requirePrivacy("strict"), edit: () => fields }],
    });
    const got = await at.ask({ model: "p/m", ...CLIENTS[from]!.least });
    expect([got.status >= 400, to.requests]).toEqual([true, []]);
  }
});
