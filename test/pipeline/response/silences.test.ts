// A stream with a silence of 16 seconds before or after its first text: the gateway writes
// something to its client, and every official SDK reads the same response.
import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import type { ModelEvent } from "tollgate/plugin";
import { createResponseContext, encodeText } from "tollgate/testing";
import { installTestClock } from "../../kit/clock.ts";
import { startBackend, startTestServices, TIMEOUTS } from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";
import { READERS } from "../../protocols/generators/sdk-readers.ts";

const LONG = 3_600_000;
const SAID: readonly ModelEvent[] = [
  { type: "start", id: "up1", model: "up" },
  { type: "open", index: 0, block: { type: "text" } },
  ...["One", " two", " three"].map((text) => ({ type: "delta", index: 0, text }) as const),
  { type: "close", index: 0 },
  { type: "usage", usage: { input: 3, output: 5 } },
  { type: "finish", reason: "stop" },
];

const roads = Object.keys(chats).flatMap((client) =>
  [client, client === "messages" ? "responses" : "messages"].flatMap((wire) =>
    ["before", "after"].map((when) => [client, wire, when] as const),
  ),
);

test.each(roads)("%s, an upstream of %s: silent %s its first token", async (client, wire, when) => {
  const time = installTestClock();
  const text = encodeText(chats[wire]!.server!, SAID, createResponseContext({ stream: true }));
  const events = text.split(/(?<=\n\n)/);
  // Until the first text is sent.
  const first = events.findIndex((event) => event.includes("One") || event.includes("On")) + 1;
  const begun = when === "before" ? 0 : first;
  let up: ServerResponse | undefined;
  await using upstream = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.flushHeaders();
    res.write(events.slice(0, begun).join(""));
    up = res;
  });
  await using s = await startTestServices({
    frontend: chats[client]!,
    providers: {
      p: {
        endpoints: [{ protocol: chats[wire]!, base: upstream.base, auth: "none" as const }],
        timeouts: { ...TIMEOUTS, firstByteMs: LONG, idleMs: LONG, totalMs: LONG },
      },
    },
  });
  const asking = s.ask({ ...LEAST[client], model: "p/m", stream: true });
  await until(() => up !== undefined);
  if (when === "before") time.skip(11_000);
  let got = "";
  const reader = (await asking).body!.pipeThrough(new TextDecoderStream()).getReader();
  const next = async () => {
    const { done, value } = await reader.read();
    got += value ?? "";
    return done;
  };
  if (when === "after") while (!/On/.test(got)) await next();
  for (let i = 0; i < 2; i++) {
    time.skip(16_000);
    const before = got.length;
    while (got.length === before) await next();
    expect(got.endsWith(chats[client]!.server!.ping)).toBe(true);
  }
  up!.end(events.slice(begun).join(""));
  while (!(await next()));
  const readers = READERS.filter(([id]) => id === client);
  for (const [, sdk, reads] of readers)
    expect([sdk, await reads(got)]).toEqual([sdk, "One two three"]);
});

test("timeouts.client_ping is the time without content after which a ping is sent", async () => {
  const time = installTestClock();
  let up: ServerResponse | undefined;
  await using upstream = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(
      encodeText(chats["responses"]!.server!, SAID, createResponseContext({ stream: true })).slice(
        0,
        700,
      ),
    );
    up = res;
  });
  await using s = await startTestServices({
    frontend: chats["messages"]!,
    pingIntervalMs: 3_000,
    providers: {
      p: {
        endpoints: [{ protocol: chats["responses"]!, base: upstream.base, auth: "none" as const }],
        timeouts: { ...TIMEOUTS, firstByteMs: LONG, idleMs: LONG, totalMs: LONG },
      },
    },
  });
  const asking = s.ask({ ...LEAST["messages"], model: "p/m", stream: true });
  await until(() => up !== undefined);
  time.skip(11_000);
  const reader = (await asking).body!.pipeThrough(new TextDecoderStream()).getReader();
  let got = "";
  const count = () => got.split(chats["messages"]!.server!.ping!).length - 1;
  for (let pings = count(); pings < 3; pings = count()) {
    time.skip(4_000);
    const before = got.length;
    while (got.length === before) got += (await reader.read()).value ?? "";
  }
  up!.destroy();
});
