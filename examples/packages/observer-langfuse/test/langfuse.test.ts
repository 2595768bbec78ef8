// The events in the format of Langfuse's ingestion API, checked by a fake server that responds with 207 and errors by event.
import { jsonResponse, startGateway, startUpstream } from "tollgate/testing";
import { testConformance } from "tollgate/testing/vitest";
import { expect, test, vi } from "vitest";
import manifest from "../package.json" with { type: "json" };
import plugin from "../src/index.ts";

testConformance(plugin, {
  ...manifest.tollgate,
  module: new URL("../src/index.ts", import.meta.url),
});

interface Event {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly body: { readonly [name: string]: unknown };
}

/** Stores events by their ID, as Langfuse does, so a repeated event counts once. */
async function langfuse(faults: number[] = []) {
  const kept = new Map<string, Event>();
  const up = await startUpstream({
    "POST /api/public/ingestion": (asked) => {
      const fault = faults.shift() ?? 207;
      const basic = Buffer.from("pk-lf-1:sk-lf-canary").toString("base64");
      if (asked.headers.authorization !== `Basic ${basic}`)
        return jsonResponse({ message: "No." }, 401);
      if (fault >= 400) return jsonResponse({ message: "Later." }, fault);
      const { batch } = asked.json() as { batch: Event[] };
      // 1: only the first event of the batch fails, temporarily.
      const errors = fault === 1 ? [{ id: batch[0]!.id, status: 500, message: "Busy." }] : [];
      const successes = batch.slice(errors.length).map(({ id }) => ({ id, status: 201 }));
      for (const event of batch.slice(errors.length)) kept.set(event.id, event);
      return jsonResponse({ successes, errors }, 207);
    },
  });
  return { up, kept, [Symbol.asyncDispose]: () => up.close() };
}

const house = (url: string) =>
  startGateway({
    plugins: { langfuse: plugin },
    config: {
      observers: [
        {
          use: "langfuse",
          with: { url, public_key: "pk-lf-1", secret_key: "sk-lf-canary", retry_ms: 20 },
        },
      ],
      providers: {
        up: {
          use: "openai-compatible",
          with: { base_url: "${env:UPSTREAM}/v1" },
          models: { model: { price: { input: "1", output: "2" } } },
        },
      },
    },
  });

test("a request is a trace with one generation per call: usage, cost, and times, without text", async () => {
  await using fake = await langfuse();
  await using at = await house(fake.up.url);
  const { headers } = await at.ask("up/model", "a canary word", { stream: true });
  await vi.waitFor(() => expect(fake.kept.size).toBe(2), 60_000);
  const [trace, generation] = [...fake.kept.values()];
  const id = headers["x-request-id"];
  expect(trace).toMatchObject({ type: "trace-create", body: { id, userId: "tester" } });
  expect(generation).toMatchObject({
    type: "generation-create",
    body: {
      id: `${id}-1`,
      traceId: id,
      model: "model",
      usageDetails: { input: 10, output: 5 },
      costDetails: { total: 0.000_02 },
      level: "DEFAULT",
    },
  });
  const { startTime, completionStartTime, endTime } = generation!.body as Record<string, string>;
  const times = [trace!.body["timestamp"] as string, startTime!, completionStartTime!, endTime!];
  expect(times).toEqual(times.toSorted());
  expect(JSON.stringify([...fake.kept.values()])).not.toContain("canary");
});

test("a failed call is an error, and only events with temporary failures are sent again", async () => {
  await using fake = await langfuse([500, 1, 429]);
  await using at = await house(fake.up.url);
  at.upstream.setRoutes({
    "POST /v1/chat/completions": jsonResponse({ error: { message: "No canary." } }, 400),
  });
  await at.ask("up/model", "Hi");
  await vi.waitFor(() => expect(fake.kept.size).toBe(2), 60_000);
  const failed = [...fake.kept.values()].find(({ type }) => type === "generation-create");
  expect(failed!.body).toMatchObject({ level: "ERROR", statusMessage: expect.any(String) });
  expect(JSON.stringify([...fake.kept.values(), ...at.logs])).not.toContain("canary");
});
