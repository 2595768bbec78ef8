// The catalog of a whole gateway, which follows its upstreams' lists, and keeps them while they are
// unavailable.
import { jsonResponse, type ScriptedReply } from "tollgate/testing";
import { describe, expect, it } from "vitest";
import { KEYS, list, raised, studio, type Studio } from "./studio.ts";
import { until } from "../../kit/wait.ts";

const EVERY_MS = 1_000;
const QUICK = `catalog: { refresh: ${EVERY_MS}ms }\n`;
const LISTED = "GET /openai/v1/models";
const CHAT: ScriptedReply = jsonResponse({
  id: "c",
  object: "chat.completion",
  model: "x",
  choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Hello" } }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
});

const draw = (s: Studio, model: string, key?: string) =>
  s.client(key).images.generate({ model, prompt: "A harbour" });
const ids = async (s: Studio, key?: string): Promise<string[]> => {
  const found: string[] = [];
  for await (const { id } of s.client(key).models.list()) found.push(id);
  return found;
};
const chat = (s: Studio, model: string) =>
  s.client().chat.completions.create({ model, messages: [{ role: "user", content: "Hi" }] });

describe("the list follows its upstream", () => {
  it("a new image model can be used, and a removed one is a 404 with suggestions", async () => {
    await using s = await studio({ hosts: ["openai", "demo"], yaml: QUICK });
    expect(await raised(draw(s, "openai/gpt-image-3"))).toMatchObject({
      status: 404,
      code: "model_not_found",
    });
    s.up.setRoutes({ [LISTED]: list("gpt-6", "gpt-image-3") });
    // Without a restart, a reload, or a request: at the next refresh.
    await until(() =>
      draw(s, "openai/gpt-image-3").then(
        () => true,
        () => false,
      ),
    );
    expect(await ids(s)).toContain("openai/gpt-image-3");
    expect(await ids(s)).not.toContain("openai/gpt-image-2");
    expect(await raised(draw(s, "openai/gpt-image-2"))).toMatchObject({
      status: 404,
      code: "model_not_found",
      param: "model",
      message: expect.stringContaining("Similar names: openai/gpt-image-3"),
    });
    expect(s.gateway.log.filter(({ msg }) => /reload|listening/.test(msg))).toHaveLength(1);
  });

  it("a 404 names no model that the key may not use, whichever key asked before", async () => {
    await using s = await studio({
      hosts: ["openai", "demo"],
      yaml: "models:\n  open-image: [openai/gpt-image-2]\n",
    });
    for (const key of [KEYS.alice, KEYS.bob, KEYS.alice, KEYS.bob]) {
      const messages: string[] = [];
      for (const model of ["openai/gpt-image-3", "openai-image", "demo/imag", "gpt-image-2"])
        messages.push((await raised(draw(s, model, key))).message);
      const said = messages.join("\n");
      expect(said).toContain("demo/image");
      // The response contains the requested name. Suggestions are the gateway's choice.
      const named = said.replace(/Model \S+ not found/g, "");
      if (key === KEYS.alice) expect(named).toContain("openai/gpt-image-2");
      else expect(named).not.toMatch(/openai\/|open-image/);
    }
    expect(await raised(draw(s, "openai/gpt-image-2", KEYS.bob))).toMatchObject({ status: 403 });
    // For a key that may not use it, it has no type either.
    expect(await raised(draw(s, "openai/gpt-6", KEYS.bob))).toMatchObject({ status: 404 });
    expect(await raised(draw(s, "openai/gpt-6"))).toMatchObject({ status: 400 });
  });

  it("a chat model is added and removed, and is forwarded without a price", async () => {
    await using s = await studio({
      hosts: ["openai"],
      yaml: QUICK,
      store: "sqlite",
      routes: { "POST /openai/v1/chat/completions": CHAT },
    });
    const there = () => ids(s).then((all) => all.includes("openai/gpt-brand-new"));
    expect(await there()).toBe(false);
    const before = await chat(s, "openai/gpt-brand-new");
    s.up.setRoutes({ [LISTED]: list("gpt-6", "gpt-brand-new") });
    await until(there);
    const while_ = await chat(s, "openai/gpt-brand-new");
    s.up.setRoutes({ [LISTED]: list("gpt-6") });
    await until(async () => !(await there()));
    const after = await chat(s, "openai/gpt-brand-new");
    for (const { model, choices, usage } of [before, while_, after]) {
      expect(model).toBe("openai/gpt-brand-new");
      expect(choices[0]!.message.content).toBe("Hello");
      expect(usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 1 });
    }
    let rows: any[] = [];
    await until(async () => (rows = await settles(s)).length >= 3);
    expect(rows.map(({ state, costNano }) => [state, costNano])).toEqual(
      Array.from({ length: 3 }, () => ["unpriced", null]),
    );
  });
});

/** Ledger rows of every finished call. */
const settles = async (s: Studio): Promise<any[]> => {
  const { items } = (await s.gateway.ask("ledger.entries", { limit: 1_000 })) as any;
  return items.filter(({ kind }: any) => kind === "settle");
};

describe("a failed list request removes nothing", () => {
  const HUGE = Buffer.from(
    JSON.stringify({ data: [{ id: "gpt-image-9", note: "x".repeat(17 * 1024 * 1024) }] }),
  );
  const BAD: readonly (readonly [name: string, answer: ScriptedReply, says: RegExp])[] = [
    ["down", { status: 503, body: "no" }, /503/],
    ["gone", { truncation: { after: "nothing", how: "reset" } }, /cannot be reached/],
    [
      "cut short",
      { ...list("gpt-image-9"), truncation: { after: 20, how: "reset" } },
      /was truncated/,
    ],
    ["slow", { delayMs: 5_000, ...list("gpt-image-9") }, /no answer within 1 s/],
    ["huge", { headers: { "content-type": "application/json" }, body: HUGE }, /larger than/],
    [
      "endless in entries",
      jsonResponse({ data: Array.from({ length: 20_001 }, (_, i) => ({ id: `gpt-image-${i}` })) }),
      /20001 entries/,
    ],
    ["a web page", { body: "<!doctype html>" }, /\S/],
    ["an error that is a success", jsonResponse({ error: "sorry" }), /not a model list/],
    ["a list of nothing we know", jsonResponse({ data: "gpt-image-9" }), /not a model list/],
    ["a redirect", { status: 302, headers: { location: "/elsewhere" }, body: "" }, /302/],
  ];

  it("the last valid list stays in use, and status reports since when and why", async () => {
    await using s = await studio({ hosts: ["openai", "demo"], yaml: QUICK });
    const before = await ids(s);
    const line = async () =>
      ((await s.gateway.ask("status")) as any).modelLists.find((l: any) => l.provider === "openai");
    const { lastSuccessAt } = await line();
    for (const [name, answer, says] of BAD) {
      s.up.setRoutes({ [LISTED]: answer });
      await s.refresh("openai");
      const status = await line();
      expect(status, name).toMatchObject({ modelCount: 3, lastError: { at: expect.any(Number) } });
      expect(status.lastError.message, name).toMatch(says);
      expect(status.lastSuccessAt, name).toBeGreaterThanOrEqual(lastSuccessAt);
      expect(await ids(s), name).toEqual(before);
      expect((await draw(s, "openai/gpt-image-2")).data, name).toHaveLength(1);
    }
    expect((await line()).failures).toBeGreaterThanOrEqual(BAD.length);
    expect(
      s.gateway.log.filter(({ msg }) => /model list unavailable, last good list kept/.test(msg)),
    ).toHaveLength(1);
    s.up.setRoutes({ [LISTED]: list("gpt-6", "gpt-image-2", "gpt-image-9") });
    await s.refresh("openai");
    expect(await line()).toMatchObject({ modelCount: 3, failures: 0 });
    expect((await line()).lastError).toBeUndefined();
    await s.gateway.line(({ msg }) => /model list available again/.test(msg));
    expect(await ids(s)).toContain("openai/gpt-image-9");
  });

  it("a restart in between changes nothing, and no request waits for a list", async () => {
    await using s = await studio({ hosts: ["openai"] });
    s.up.setRoutes({ [LISTED]: { delayMs: 600_000, ...list("gpt-image-9") } });
    await s.restart();
    // The list request does not end during this test.
    expect((await draw(s, "openai/gpt-image-2")).data).toHaveLength(1);
    expect(await ids(s)).toContain("openai/gpt-image-2");
    const [status] = ((await s.gateway.ask("status")) as any).modelLists;
    expect(status).toMatchObject({
      provider: "openai",
      modelCount: 3,
      lastSuccessAt: expect.any(Number),
    });
  });
});
