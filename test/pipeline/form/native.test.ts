// Hooks see and edit the form of a native endpoint like its JSON.
import { afterAll, beforeAll, expect, it } from "vitest";
import { apiKeySchema, defineMiddleware, defineProvider, isFilePart } from "tollgate/plugin";
import { startTestGateway, jsonResponse, startUpstream, type TestUpstream } from "tollgate/testing";
import audio from "../../audio/frontend.ts";

let up: TestUpstream;
beforeAll(async () => void (up = await startUpstream({ "*": jsonResponse({ text: "Hello" }) })));
afterAll(() => up.close());

const native = defineProvider({
  api: 1,
  name: "native",
  summary: "Sends forms by itself",
  credential: apiKeySchema,
  facts: {
    asOf: "2026-11-01",
    models: [
      {
        model: "ear",
        operation: "dictation",
        price: { lines: [{ unit: "seconds", usd: "1", per: 1 }] },
      },
    ],
  },
  setup: () => ({
    endpoints: [
      {
        operation: "dictation",
        base: up.url,
        auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
        async *run(request, call) {
          const form = new FormData();
          form.set("secret", "words");
          form.set("file", new Blob([new Uint8Array(request.file.data)]), request.file.filename);
          const made = new Response(form);
          const got = await call.fetch("/hear", {
            method: "POST",
            headers: { "content-type": made.headers.get("content-type")! },
            body: Buffer.from(await made.arrayBuffer()),
          });
          yield { type: "start" };
          yield { type: "item", index: 0, item: (await got.json()) as { text: string } };
          yield { type: "usage", usage: { seconds: 1 } };
          yield { type: "finish", reason: "stop" };
        },
      },
    ],
  }),
});

it("a native endpoint receives the form after the prepare hooks", async () => {
  const seen: unknown[] = [];
  const hook = defineMiddleware({
    api: 1,
    name: "hook",
    summary: "Takes a field out",
    sends: "nowhere",
    setup: () => ({
      admit: (x) => x.identify({ id: "k" }),
      prepare(out) {
        seen.push(out.get("secret"), isFilePart(out.get("file")));
        out.remove("secret");
        out.set("added", ["a", "b"]);
      },
    }),
  });
  await using at = await startTestGateway({
    plugins: { audio, native, hook },
    yaml: "frontends: [audio]\nmiddleware: [hook]\nproviders: { n: { use: native, with: { api_key: k } } }",
  });
  const form = new FormData();
  const bytes = Buffer.from([0, 255, 13, 10]);
  form.set("file", new Blob([bytes]), "a.wav");
  form.set("model", "n/ear");
  const res = await fetch(`${at.url}/v1/audio/transcriptions`, { method: "POST", body: form });
  expect([res.status, ((await res.json()) as any).text]).toEqual([200, "Hello"]);
  expect(seen).toEqual(["words", true]);
  const [asked] = up.requests;
  const type = asked!.headers["content-type"]!;
  const read = await new Response(new Uint8Array(asked!.body), {
    headers: { "content-type": type },
  }).formData();
  expect([...read.keys()]).toEqual(["file", "added[]", "added[]"]);
  expect(Buffer.from(await (read.get("file") as File).arrayBuffer())).toEqual(bytes);
});
