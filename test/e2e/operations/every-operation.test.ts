// Rules for every non-streaming operation: one exact row per request, limits and permissions before
// anything is sent, and failures that are never forwarded as responses. operations/table.ts
// contains the table.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { turnEventLoop, until } from "../../kit/wait.ts";
import { operating, hostOf, keyOf, routeOf, type Operating } from "./stage.ts";
import { OPERATIONS } from "./table.ts";

let at: Operating;
beforeAll(async () => void (at = await operating()));
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

const ZDR = { "service-zdr": "required" };

describe.each(Object.entries(OPERATIONS))("%s", (name, operation) => {
  const { body, demo, priced } = operation;
  const sound = hostOf(name, "sound");
  const ask = (model: string, more: object = {}, of: Parameters<Operating["ask"]>[2] = {}) =>
    at.ask(operation, { model, ...body, ...more }, of);

  it.each(priced)("$model: one row, with what the provider bills, at its price", async (of) => {
    const { model, state, nano } = of;
    const provider = model.split("/")[0]!;
    const before = (await at.rows(provider)).length;
    expect(await ask(model)).toMatchObject({ status: 200 });
    const [row, ...others] = (await at.rows(provider)).slice(before);
    expect(others).toEqual([]);
    const billed = at.up.bills[0]!.usage;
    expect(row.state).toBe(state);
    if (state === "estimated") expect(row.usage.input).toBeGreaterThanOrEqual(billed.input!);
    else expect(row.usage).toEqual(billed);
    const due = nano(row.usage);
    expect(row.costNano ?? null).toBe(due === null ? null : String(due));
  });

  it("the ledger counts what the providers bill", async () => {
    const before = (await at.rows()).length;
    const counting = [sound, ...priced.filter((of) => of.state === "exact").map((of) => of.model)];
    const answers = await Promise.all(counting.map((model) => ask(model)));
    expect(answers.map(({ status }) => status)).toEqual(counting.map(() => 200));
    const booked = (await at.rows()).slice(before);
    expect(booked.map(({ state }) => state)).toEqual(counting.map(() => "exact"));
    const units = new Set([...booked, ...at.up.bills].flatMap(({ usage }) => Object.keys(usage)));
    const sum = (all: readonly { usage: any }[], unit: string) =>
      all.reduce((total, { usage }) => total + (usage[unit] ?? 0), 0);
    for (const unit of units) expect(sum(booked, unit), unit).toBe(sum(at.up.bills, unit));
  });

  it("rejects a key that may not use the model, and an unknown key", async () => {
    expect((await ask(sound, {}, { id: "narrow" })).status).toBe(403);
    expect((await ask(sound, {}, { id: "no" })).status).toBe(401);
    expect(at.asked()).toEqual([]);
  });

  it("rejects a request whose hold exceeds the budget, and accepts the next one that fits", async () => {
    const id = `poor-${name}`;
    const spent = await ask(sound, operation.large, { id });
    expect([spent.status, spent.body.error.code]).toEqual([429, "insufficient_quota"]);
    expect(at.asked()).toEqual([]);
    const { small } = operation;
    expect((await ask(sound, small.body, { id })).status).toBe(200);
    const row = (await at.rows(`sound-${name}`)).at(-1);
    expect(row.costNano).toBe(String(small.nano));
  });

  it("counts a limit before anything is sent", async () => {
    const id = `few-${name}`;
    expect((await ask(sound, operation.limit.body, { id })).status).toBe(200);
    at.up.reset();
    expect((await ask(sound, operation.limit.body, { id })).status).toBe(429);
    expect(at.asked()).toEqual([]);
  });

  it("under Service-ZDR, calls no provider that retains data or has no policy", async () => {
    for (const model of [sound, ...priced.map((of) => of.model)])
      expect((await ask(model, {}, { headers: ZDR })).status, model).toBe(403);
    expect(at.asked()).toEqual([]);
    expect((await ask(demo, {}, { headers: ZDR })).status).toBe(200);
  });

  it("a client's disconnect ends the provider's request, and there is one row", async () => {
    const stop = new AbortController();
    const asking = ask(hostOf(name, "slow"), {}, { signal: stop.signal }).catch(() => {});
    await until(() => at.asked().length === 1);
    stop.abort();
    await asking;
    await until(() => at.asked()[0]!.state === "aborted");
    await until(async () => (await at.rows(`slow-${name}`)).length === 1);
  });

  it("a truncated response is never complete, and is billed by an estimate", async () => {
    const cut = ask(hostOf(name, "cut"));
    const status = await cut.then((answer) => answer.status).catch(() => "broken");
    expect([502, "broken"]).toContain(status);
    await until(async () => (await at.rows(`cut-${name}`)).length === 1);
    await turnEventLoop(10);
    const [row, ...others] = await at.rows(`cut-${name}`);
    expect(others).toEqual([]);
    expect(row.state).toBe("estimated");
  });

  it("an invalid response is a 502", async () => {
    for (const odd of operation.odd) {
      at.up.setRoutes({ [routeOf(name, "odd")]: odd });
      expect(await ask(hostOf(name, "odd")), JSON.stringify(odd)).toMatchObject({ status: 502 });
    }
  });

  it("the next candidate is called with the same request", async () => {
    expect((await ask(`two-${name}`)).status).toBe(200);
    expect(at.asked().map(({ path }) => path.split("/")[1])).toEqual([
      `down-${name}`,
      `sound-${name}`,
    ]);
    const [first, second] = at.asked();
    expect(second!.body.length).toBe(first!.body.length);
  });

  it("rejects what is not a request of this operation", async () => {
    for (const wrong of operation.wrong)
      expect((await ask(demo, wrong)).status, JSON.stringify(wrong)).toBe(400);
  });

  it("model lists have its type, and errors name its endpoint", async () => {
    const headers = { authorization: `Bearer ${keyOf("alice")}` };
    const list = await fetch(`${at.gateway.url}/v1/models?operation=${operation.kind}`, {
      headers,
    });
    const { data } = (await list.json()) as any;
    const ids = data.map(({ id }: any) => id);
    expect(ids).toEqual(expect.arrayContaining([demo, sound, ...priced.map((of) => of.model)]));
    expect(data.find(({ id }: any) => id === demo)).toMatchObject({ operation: operation.kind });
    const chat = await at.ask(
      { path: "/v1/chat/completions" },
      { model: demo, messages: [{ role: "user", content: "x" }] },
    );
    expect([chat.status, chat.body.error.message]).toEqual([
      400,
      expect.stringContaining(`is ${operation.noun}. Send requests for it to ${operation.path}`),
    ]);
    const wrong = await ask("demo/echo");
    expect([wrong.status, wrong.body.error.message]).toEqual([
      400,
      expect.stringContaining("is a chat model"),
    ]);
  });
});
