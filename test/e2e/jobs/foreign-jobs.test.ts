// No route of jobs shows or changes an object of another account: the client gets the response for
// an ID that does not exist, after the same work in the store, and its lists do not contain the
// object. A clock would measure the machine, so the work is counted.
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startUpstream, type TestUpstream } from "tollgate/testing";
import { resetFakeBatches } from "../../kit/batch-provider.ts";
import { storeCalls } from "../../kit/counted-store.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { FakeVideoApi } from "../../kit/video-api.ts";
import { until, waitUntilStable } from "../../kit/wait.ts";

const [alice, bob] = [mintKey().secret, mintKey().secret];
const kitFile = (name: string) => fileURLToPath(new URL(`../../kit/${name}`, import.meta.url));
const log = storeCalls();
const key = (id: string, secret: string) =>
  `{ id: ${id}, digest: ${digestKey(secret)}, account: ${id}s }`;
let gateway: InProcessGateway;
let up: TestUpstream;

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function call(
  secret: string,
  path: string,
  of: { readonly method?: string; readonly body?: object; readonly isAnthropic?: boolean } = {},
): Promise<Answer> {
  const { method = of.body ? "POST" : "GET", body, isAnthropic = false } = of;
  const isForm = body instanceof FormData;
  const response = await fetch(`${gateway.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${secret}`,
      ...(body && !isForm && { "content-type": "application/json" }),
      ...(isAnthropic && { "anthropic-version": "2023-06-01" }),
    },
    body: isForm ? body : body ? JSON.stringify(body) : null,
  });
  return { status: response.status, text: await response.text() };
}

const formWith = (name: string, text: string): FormData => {
  const form = new FormData();
  if (name === "file") form.append("purpose", "batch");
  form.append(name, new File([text], "in.jsonl"));
  return form;
};
const idOf = ({ text }: Answer): string => (JSON.parse(text) as { id: string }).id;

beforeAll(async () => {
  resetFakeBatches();
  up = await startUpstream(new FakeVideoApi().routes);
  gateway = await startInProcess({
    yaml: `
store: { use: ${kitFile("counted-store.ts")} }
frontends: [chat-completions, messages, { use: responses, with: { background: {} } }, jobs, videos]
providers:
  fake: { use: ${kitFile("batch-provider.ts")}, with: { api_key: secret } }
  demo: { use: demo }
  films:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", videos: ["film*"], list_models: false }
    models: { film-1: { operation: video, price: { seconds_out: "0.05" } } }
accounts: { alices: {}, bobs: {} }
middleware:
  - use: auth
    with: { keys: [${key("alice", alice)}, ${key("bob", bob)}] }
`,
  });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await up?.close();
  log.isFrozen = false;
});

/** Creates an object of each kind, and returns their IDs. */
async function createAll() {
  const request = {
    model: "fake/endless",
    max_tokens: 9,
    messages: [{ role: "user", content: "a" }],
  };
  const line = { custom_id: "c", method: "POST", url: "/v1/chat/completions", body: request };
  const file = idOf(
    await call(alice, "/v1/files", { body: formWith("file", JSON.stringify(line)) }),
  );
  const upload = idOf(
    await call(alice, "/v1/uploads", {
      body: { filename: "a", mime_type: "a/b", purpose: "batch", bytes: 4 },
    }),
  );
  const batch = idOf(
    await call(alice, "/v1/batches", {
      body: { input_file_id: file, endpoint: line.url, completion_window: "24h" },
    }),
  );
  const messages = idOf(
    await call(alice, "/v1/messages/batches", {
      body: { requests: [{ custom_id: "c", params: request }] },
      isAnthropic: true,
    }),
  );
  const response = idOf(
    await call(alice, "/v1/responses", {
      body: { model: "demo/demo", input: "hi", background: true },
    }),
  );
  const video = idOf(
    await call(alice, "/v1/videos", { body: { model: "films/film-1", prompt: "A cat" } }),
  );
  await until(async () =>
    (await call(alice, `/v1/videos/${video}`)).text.includes('"status":"completed"'),
  );
  return { file, upload, batch, messages, response, video };
}

type Kind = keyof Awaited<ReturnType<typeof createAll>>;

/** Routes that name an object, with the kind of the object. */
const ROUTES: readonly (readonly [Kind, method: string, path: string, isAnthropic?: boolean])[] = [
  ["file", "GET", "/v1/files/ID"],
  ["file", "GET", "/v1/files/ID/content"],
  ["file", "DELETE", "/v1/files/ID"],
  ["file", "GET", "/v1/files/ID", true],
  ["file", "DELETE", "/v1/files/ID", true],
  ["upload", "PART", "/v1/uploads/ID/parts"],
  ["upload", "POST", "/v1/uploads/ID/complete"],
  ["upload", "POST", "/v1/uploads/ID/cancel"],
  ["batch", "GET", "/v1/batches/ID"],
  ["batch", "POST", "/v1/batches/ID/cancel"],
  ["messages", "GET", "/v1/messages/batches/ID", true],
  ["messages", "GET", "/v1/messages/batches/ID/results", true],
  ["messages", "POST", "/v1/messages/batches/ID/cancel", true],
  ["messages", "DELETE", "/v1/messages/batches/ID", true],
  ["response", "GET", "/v1/responses/ID"],
  ["response", "GET", "/v1/responses/ID?stream=true"],
  ["response", "POST", "/v1/responses/ID/cancel"],
  ["response", "DELETE", "/v1/responses/ID"],
  ["response", "GET", "/v1/responses/ID/input_items"],
  ["video", "GET", "/v1/videos/ID"],
  ["video", "GET", "/v1/videos/ID/content"],
  ["video", "POST", "/v1/videos/ID/remix"],
  ["video", "DELETE", "/v1/videos/ID"],
];
/** Routes whose body names a file. */
const REFERENCES = ["/v1/batches"];
const LISTS = [
  ["/v1/files", false],
  ["/v1/files", true],
  ["/v1/batches", false],
  ["/v1/messages/batches", true],
  ["/v1/videos", false],
] as const;
/** Queries of lists whose value is the ID of an object. */
const CURSORS: readonly (readonly [Kind, path: string, isAnthropic?: boolean])[] = [
  ["file", "/v1/files?after="],
  ["file", "/v1/files?after_id=", true],
  ["batch", "/v1/batches?after="],
  ["messages", "/v1/messages/batches?after_id=", true],
  ["video", "/v1/videos?after="],
];

/** An ID of the same form that does not exist. */
const unknownLike = (id: string): string => id.replace(/[^_-]{8}$/, "AAAAAAAA");

/** Returns what requests with a foreign ID, and with an unknown one, read and write in the store. */
async function workOf(send: (id: string) => Promise<string>, id: string) {
  const count = async (of: string) => {
    await waitUntilStable(() => log.calls.length);
    log.calls.length = 0;
    const text = await send(of);
    await waitUntilStable(() => log.calls.length);
    return { text, work: log.calls.join("\n") };
  };
  return { foreign: await count(id), none: await count(unknownLike(id)) };
}

it("a foreign object gets the same response as one that does not exist, and is unchanged", async () => {
  const own = await createAll();
  const readOwn = async () => [
    (await call(alice, `/v1/files/${own.file}`)).text,
    (await call(alice, `/v1/files/${own.file}/content`)).text,
    JSON.parse((await call(alice, `/v1/batches/${own.batch}`)).text).status !== "cancelling",
    JSON.parse(
      (await call(alice, `/v1/messages/batches/${own.messages}`, { isAnthropic: true })).text,
    ).cancel_initiated_at,
    (await call(alice, `/v1/responses/${own.response}`)).status,
  ];
  log.isFrozen = true;
  const before = await readOwn();
  const wrong: string[] = [];
  const compare = async (name: string, send: (id: string) => Promise<string>, id: string) => {
    const { foreign, none } = await workOf(send, id);
    if (foreign.text !== none.text) wrong.push(`${name}: ${foreign.text}, but ${none.text}`);
    if (foreign.work !== none.work) wrong.push(`${name}: ${foreign.work}, but ${none.work}`);
    return foreign.text;
  };
  for (const [kind, method, path, isAnthropic = false] of ROUTES) {
    const send = async (id: string): Promise<string> => {
      const to = path.replace("ID", id);
      const answer =
        method === "PART"
          ? await call(bob, to, { body: formWith("data", "text") })
          : await call(bob, to, {
              method,
              isAnthropic,
              ...(method === "POST" && { body: { part_ids: ["part_x"], prompt: "A dog" } }),
            });
      const text = answer.text
        .replaceAll(id.slice(-32), "ID")
        .replaceAll(/"request_id":"[^"]*"/g, "");
      return `${answer.status} ${text}`;
    };
    const text = await compare(`${method} ${path}`, send, own[kind]);
    if (!text.startsWith("404")) wrong.push(`${method} ${path}: ${text}`);
  }
  for (const [kind, path, isAnthropic = false] of CURSORS)
    await compare(
      path,
      async (id) => {
        const { status, text } = await call(bob, `${path}${id}`, { isAnthropic });
        return `${status} ${text.replaceAll(id, "ID").replaceAll(/"request_id":"[^"]*"/g, "")}`;
      },
      own[kind],
    );
  for (const path of REFERENCES) {
    const send = async (id: string): Promise<string> => {
      const body = {
        input_file_id: id,
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
      };
      const { status, text } = await call(bob, path, { body });
      return `${status} ${text.replaceAll(id, "ID")}`;
    };
    await compare(`POST ${path}`, send, own.file);
  }
  for (const [path, isAnthropic] of LISTS) {
    const { text } = await call(bob, path, { isAnthropic });
    if ((JSON.parse(text) as { data: unknown[] }).data.length > 0) wrong.push(`${path}: ${text}`);
  }
  expect(wrong).toEqual([]);
  expect(await readOwn()).toEqual(before);
});
