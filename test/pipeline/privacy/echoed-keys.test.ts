// A provider that returns the operator's key in its response headers: no client receives it, in any
// mode.
import { describe, expect, it } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";
import { upstreamAnswers } from "../../protocols/linear/answers.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";

/** As for a provider named p. */
const KEY = "secret-p";

const BODIES: { readonly [id: string]: object } = { ...LEAST, images: { prompt: "a harbour" } };
const protocols: { readonly [id: string]: Protocol } = { ...chats, images: images() };

/** Forwards all headers. */
const loose = (protocol: Protocol): Protocol => ({
  ...protocol,
  headers: { response: ["openai-*", "anthropic-*", "x-*"] },
});

const pairs = Object.keys(protocols).flatMap((from) =>
  Object.keys(protocols)
    .filter((to) => protocols[from]!.operationSpec.name === protocols[to]!.operationSpec.name)
    .map((to) => [from, to] as const),
);

describe.each(pairs)("from %s to %s", (from, to) => {
  it.each(from === "images" ? [false] : [false, true])("stream: %s", async (stream) => {
    const { wholes, streams } = upstreamAnswers[to]!;
    await using up = await startBackend((req, res) => {
      const [echoed] = [req.headers["x-key"]].flat();
      expect(echoed).toContain(KEY);
      const body = JSON.parse(req.body) as { stream?: boolean };
      res.writeHead(200, {
        "content-type": body.stream ? "text/event-stream" : "application/json",
        "openai-version": `of ${echoed}`,
        "openai-processing-ms": Buffer.from(KEY).toString("base64"),
        "anthropic-version": encodeURIComponent(`"${KEY}"`),
        "x-echo": [KEY, `and ${KEY}`],
      });
      const answer = body.stream ? Object.values(streams)[0]!(1) : [Object.values(wholes)[0]!(1)];
      res.end(Buffer.concat(answer));
    });
    await using s = await startTestServices({
      frontend: loose(protocols[from]!),
      providers: {
        p: {
          endpoints: [
            {
              protocol: loose(protocols[to]!),
              base: up.base,
              auth: { header: "x-key", prefix: "K ", field: "api_key" as never },
            },
          ],
          facts: new Map([["m", { operation: protocols[to]!.operationSpec.name }]]),
        },
      },
    } as never);
    s.house.mask.add([KEY]);
    const answered = await s.ask({ model: "p/m", ...BODIES[from], stream });
    await answered.text();
    expect(answered.status).toBe(200);
    const told = [...answered.headers].map((line) => line.join(": "));
    expect(told.filter((line) => line.includes(KEY))).toEqual([]);
    expect(told.filter((line) => line.includes(Buffer.from(KEY).toString("base64")))).toEqual([]);
    // In passthrough mode, the rest of the header is forwarded.
    expect(answered.headers.get("openai-version")).toBe(from === to ? "of K [secret]" : null);
  });
});

it("nor for a stored response", async () => {
  await using up = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": `application/json; of=${KEY}`, "x-toy-of": KEY });
    res.end("{}");
  });
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: {
        endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" }],
        stateMode: "relay",
      },
    },
    read: () => ({
      model: { provider: "p", model: "m", credential: "default" },
      actionType: "relay",
      action: "generate",
    }),
  });
  s.house.mask.add([KEY]);
  const answered = await s.ask({ model: "p/m", text: "x" });
  expect([answered.status, await answered.text()]).toEqual([200, "{}"]);
  expect(answered.headers.get("x-toy-of")).toBe("[secret]");
  expect(answered.headers.get("content-type")).toBe("application/json; of=[secret]");
});

it("nor in a media type from a relay", async () => {
  await using up = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": `application/x-toy; of="${KEY}"` });
    res.end(JSON.stringify({ say: "Hi", usage: { input: 1, output: 1 }, end: "stop" }));
  });
  const plain = createToyProtocol();
  const protocol: Protocol<"chat"> = {
    ...plain,
    client: {
      ...plain.client!,
      createPassthrough(sink, to, headers) {
        sink.setContentType(String(headers["content-type"]));
        return plain.client!.createPassthrough!(sink, to, headers);
      },
    },
  };
  await using s = await startTestServices({
    frontend: protocol,
    providers: { p: { endpoints: [{ protocol, base: up.base, auth: "none" }] } },
  });
  s.house.mask.add([KEY]);
  const answered = await s.ask({ model: "p/m", text: "x" });
  expect(await answered.json()).toMatchObject({ say: "Hi" });
  expect(answered.headers.get("content-type")).toBe('application/x-toy; of="[secret]"');
});
