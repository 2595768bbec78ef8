// The media type of a response: the protocol's, or a relay's; and the protocol that a route's read
// result names.
import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { defineFrontend, defineMiddleware, type Protocol } from "tollgate/plugin";
import { startTestGateway, type TestGatewayOptions, type TestGateway } from "tollgate/testing";
import audio from "../../audio/frontend.ts";
import sounds from "../../audio/provider.ts";
import { speech } from "../../audio/speech.ts";
import { transcripts } from "../../audio/transcript.ts";
import { installTestClock } from "../../kit/clock.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";

let reply: (res: ServerResponse) => void;
let asked = 0;
const up = createServer((req, res) => {
  req.resume().on("end", () => {
    asked++;
    reply(res);
  });
});
beforeAll(async () => {
  up.listen(0, "127.0.0.1");
  await once(up, "listening");
});
afterAll(() => {
  up.closeAllConnections();
  up.close();
});

const started = (plugins: TestGatewayOptions["plugins"], more = ""): Promise<TestGateway> =>
  startTestGateway({
    plugins: { audio, sounds, ...plugins },
    yaml: `frontends: [audio]
providers:
  p: { use: sounds, with: { base_url: "http://127.0.0.1:${(up.address() as AddressInfo).port}", api_key: k } }
  q: { use: sounds, with: { base_url: "http://127.0.0.1:${(up.address() as AddressInfo).port}", api_key: k } }
  r: { use: sounds, with: { base_url: "http://127.0.0.1:${(up.address() as AddressInfo).port}", api_key: k, passes: false } }
models: { mouth: [p/mouth, q/mouth], other: [p/mouth, r/mouth] }
${more}`,
  });
const speak = (at: TestGateway, model: string, body: object = {}) =>
  fetch(`${at.url}/v1/audio/speech`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, input: "x", ...body }),
  });

it("no headers are sent during silence if a comment is not possible, so that the upstream's type can be used", async () => {
  await using at = await started({});
  const time = installTestClock();
  asked = 0;
  let answer: ServerResponse | undefined;
  reply = (res) => void (answer = res);
  const got = speak(at, "p/mouth");
  let over = false;
  void got.then(() => (over = true));
  await until(() => answer !== undefined);
  // A stream with pings waits ten seconds.
  time.skip(11_000);
  await turnEventLoop();
  expect(over).toBe(false);
  answer!.writeHead(200, { "content-type": "audio/flac" }).end("sound");
  const res = await got;
  expect([res.headers.get("content-type"), await res.text()]).toEqual(["audio/flac", "sound"]);
});

/** Sets its type after it has sent data. */
const late = (): Protocol<"recital"> => {
  const good = speech();
  return {
    ...good,
    server: { ...good.server!, ping: " " },
    client: {
      ...good.client!,
      createPassthrough: (sink) => ({
        isBetweenEvents: true,
        push(chunk) {
          sink.reportContent();
          sink.write(chunk);
          sink.setContentType("audio/late");
        },
        end() {},
        writeFault: () => sink.write(Buffer.from("!")),
      }),
    },
  };
};

it("a type that arrives after the headers ends the response, because the first half has another type", async () => {
  const { setup, ...rest } = sounds;
  const strange = {
    ...rest,
    setup: async (o: any, ctx: any) => {
      const made = await setup(o, ctx);
      return { ...made, endpoints: made.endpoints.map((e: any) => ({ ...e, protocol: late() })) };
    },
  };
  const spoken = defineFrontend({
    api: 1,
    name: "spoken",
    summary: "x",
    setup: () => ({
      protocol: late(),
      routes: [
        {
          method: "POST",
          path: "/v1/audio/speech",
          actionType: "generate",
          readInput: (_x, { model }) => ({ model: String(model), stream: true }),
        },
      ],
    }),
  });
  await using at = await started({ audio: spoken, sounds: strange as never });
  reply = (res) => void res.writeHead(200, { "content-type": "audio/wav" }).end("sound");
  const res = await speak(at, "p/mouth");
  expect(res.headers.get("content-type")).toBe("audio/basic");
  expect(await res.text()).toBe("sound!");
  await until(() => at.storeCommands.some((row) => row.do === "settle"));
  expect(at.storeCommands.find((row) => row.do === "settle")).toMatchObject({
    outcome: "upstream",
  });
});

it("an invalid type is the upstream's error, and another candidate may respond", async () => {
  await using at = await started({});
  asked = 0;
  reply = (res) =>
    void res
      .writeHead(200, { "content-type": asked === 1 ? `audio/${"x".repeat(300)}` : "audio/ogg" })
      .end("sound");
  const res = await speak(at, "mouth");
  expect([res.status, res.headers.get("content-type"), asked]).toEqual([200, "audio/ogg", 2]);
});

it("headers of one candidate are not used for the next one", async () => {
  await using at = await started({});
  asked = 0;
  reply = (res) => {
    res.writeHead(200, { "content-type": "audio/ogg" });
    if (asked > 1) return void res.end("sound");
    res.flushHeaders();
    return void setImmediate(() => res.destroy());
  };
  const res = await speak(at, "other");
  expect([res.headers.get("content-type"), await res.text(), asked]).toEqual([
    "audio/basic",
    "sound",
    2,
  ]);
});

it("a response that a hook stored is returned with its type", async () => {
  let kept: any;
  const cache = defineMiddleware({
    api: 1,
    name: "keeps",
    summary: "x",
    sends: "nowhere",
    setup: () => ({
      admit: (x) => x.identify({ id: "k" }),
      async attempt(_call, next) {
        if (kept) return kept;
        const got = await next();
        void got.recordResponse(1000).then((answer) => (kept = answer));
        return got;
      },
    }),
  });
  await using at = await started({ keeps: cache }, "middleware: [keeps]");
  reply = (res) => void res.writeHead(200, { "content-type": "audio/opus" }).end("sound");
  expect(await (await speak(at, "p/mouth")).text()).toBe("sound");
  await until(() => kept);
  asked = 0;
  const again = await speak(at, "p/mouth");
  expect([again.headers.get("content-type"), await again.text(), asked]).toEqual([
    "audio/opus",
    "sound",
    0,
  ]);
});

it("a protocol that the route does not list is the plugin's error, and is logged", async () => {
  const wrong = defineFrontend({
    api: 1,
    name: "wrong",
    summary: "x",
    setup: () => ({
      protocol: speech(),
      routes: [
        {
          method: "POST",
          path: "/v1/audio/speech",
          actionType: "generate",
          protocols: [transcripts()],
          readInput: () => ({ model: "p/mouth", protocol: transcripts() }),
        },
      ],
    }),
  });
  await using at = await started({ audio: wrong });
  asked = 0;
  const res = await speak(at, "p/mouth");
  expect([res.status, asked]).toEqual([500, 0]);
  expect(
    at.logs.some(({ fields }) =>
      String(fields["err"]).includes("does not name the protocol dictations"),
    ),
  ).toBe(true);
});

it.each([
  ["several protocols and no read", { protocols: [transcripts()] }, /no `read` to choose/],
  [
    "a protocol without a server half",
    { protocols: [{ ...speech(), server: undefined }], read: () => ({ model: "m" }) },
    /no server half/,
  ],
])("%s is rejected on load", async (_what, more, why) => {
  const wrong = defineFrontend({
    api: 1,
    name: "wrong",
    summary: "x",
    setup: () => ({
      protocol: speech(),
      routes: [{ method: "POST", path: "/x", actionType: "generate", ...(more as object) }],
    }),
  });
  await expect(started({ audio: wrong })).rejects.toThrow(why);
});
