// Progress of a native endpoint's call: a request with a body and without a response may have been
// accepted.
import { expect, it } from "vitest";
import type { FailurePoint } from "../../../src/model/call-retry.ts";
import { trackPluginFetch } from "../../../src/pipeline/exchange/plugin-fetch.ts";

interface Asked {
  readonly url: string;
  answer(): void;
  fail(): void;
}

function scene(stage: FailurePoint = "rejected") {
  const away = new AbortController();
  const call = { failurePoint: stage, signal: away.signal };
  const asked: Asked[] = [];
  const { fetch } = trackPluginFetch(
    call,
    (url) =>
      new Promise<Response>((resolve, reject) => {
        const fail = () => reject(new Error("The line broke."));
        away.signal.addEventListener("abort", fail);
        asked.push({ url: String(url), answer: () => resolve(new Response("{}")), fail });
      }),
  );
  return { call, away, asked, fetch };
}
const JOB = { method: "POST", body: "{}" };

it("is unanswered until its provider sends something", async () => {
  const { call, asked, fetch } = scene();
  const job = fetch("/job", JOB);
  expect(call.failurePoint).toBe("no_response");
  asked[0]!.answer();
  const answer = await job;
  expect(call.failurePoint).toBe("no_response");
  await answer.text();
  expect(call.failurePoint).toBe("rejected");
});

it("stays unanswered if its client or the plugin cancels it", async () => {
  const client = scene();
  const job = client.fetch("/job", JOB).catch(() => {});
  client.away.abort();
  await job;
  expect(client.call.failurePoint).toBe("no_response");

  const plugin = scene();
  const late = new AbortController();
  const other = plugin.fetch("/job", { ...JOB, signal: late.signal }).catch(() => {});
  late.abort();
  plugin.asked[0]!.fail();
  await other;
  expect(plugin.call.failurePoint).toBe("no_response");
});

it("of two concurrent calls, a response to one does not count for the other", async () => {
  const { call, asked, fetch } = scene();
  const jobs = [fetch("/a", JOB), fetch("/b", JOB)];
  asked[0]!.answer();
  await (await jobs[0])!.text();
  expect(call.failurePoint).toBe("no_response");
  asked[1]!.answer();
  await (await jobs[1])!.text();
  expect(call.failurePoint).toBe("rejected");
});

it("starts no work if the connection failed, nothing was sent, or the scheme needs a handshake", async () => {
  const broken = scene();
  const job = broken.fetch("/job", JOB).catch(() => {});
  broken.asked[0]!.fail();
  await job;
  expect(broken.call.failurePoint).toBe("rejected");

  const looking = scene();
  void looking.fetch("/status");
  expect(looking.call.failurePoint).toBe("rejected");

  const signing = scene("unsent");
  void signing.fetch("/token", JOB);
  expect(signing.call.failurePoint).toBe("unsent");
});
