// Accounts in the real gateway: all budgets of a branch apply together across two workers, on both
// stores, and a rejection names the account.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  jsonResponse,
  say,
  scriptedModel,
  startUpstream,
  type TestUpstream,
} from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";

/** Cost of one image, reserved and billed alike. */
const EACH = 0.04;
const usd = (pictures: number) => `usd=${(pictures * EACH).toFixed(2)}/total`;

const yaml = (url: string, store: string, more = "") => `
frontends: [chat-completions, messages, responses, images, models]
middleware: [auth, zdr, { use: limits, with: { hold: hard } }, usage]
workers: 2
store: ${store}
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }, models: { draw: { operation: image, price: { images: ${EACH} } }, model: { price: { input: 1, output: 2 }, limits: { output: 64, context: 4096 } } } }
  away: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["none"] } }
accounts:
  org: { limits: [${usd(30)}], labels: { org: "1" } }
  team: { parent: org, limits: [${usd(20)}] }
  other: { parent: org, models: ["up/*"], privacy: off }
  empty: { limits: [usd=0/month] }
  slow: { limits: [requests=0/minute] }
${more}`;

const routes = {
  ...scriptedModel(say("Hello")),
  "POST /v1/images/generations": () => ({
    ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
    waitMs: 5,
    billedUsage: { images: 1 },
  }),
};

describe.each(["{ use: sqlite, with: { durability: process, ballast_mb: 0 } }", "memory"])(
  "on the %s store",
  (store) => {
    let up: TestUpstream;
    let at: Daemon;
    beforeAll(async () => {
      up = await startUpstream(routes);
      at = await startDaemon({ yaml: yaml(up.url, store) });
    });
    afterAll(async () => {
      await at[Symbol.asyncDispose]();
      await up.close();
    });

    const made = async (account: string) =>
      ((await at.ask("keys.create", { account, name: `of ${account}` })) as { secret: string })
        .secret;
    const ask = (path: string, key: string, body: object) =>
      fetch(at.url + path, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${key}`,
          ...(path === "/v1/messages" && { "x-api-key": key, "anthropic-version": "2023-06-01" }),
        },
        body: JSON.stringify(body),
      });
    const draw = async (key: string) => {
      const answer = await ask("/v1/images/generations", key, {
        model: "up/draw",
        prompt: "a gate",
        response_format: "b64_json",
      });
      return { status: answer.status, text: await answer.text() };
    };
    const sums = async (input: object) =>
      Object.fromEntries(
        (
          (await at.ask("ledger.totals", input as never)) as {
            rows: { by: { account: string }; costNano: string; calls: number }[];
          }
        ).rows.map(({ by, costNano }) => [by.account, Number(costNano) / 1e9 / EACH]),
      );

    it("150 concurrent requests on three keys spend exactly the outer budget, and no team exceeds its own", async () => {
      const keys = [await made("team"), await made("team"), await made("other")];
      const all = await Promise.all(
        keys.flatMap((key) => Array.from({ length: 50 }, () => draw(key))),
      );
      expect(all.filter(({ status }) => status === 200)).toHaveLength(30);
      expect(up.bills).toHaveLength(30);
      const refused = all.filter(({ status }) => status === 429);
      expect(refused).toHaveLength(120);
      for (const { text } of refused)
        expect(text).toMatch(/budget of \$\d\.\d\d in total \(account:(org|team)\) .*never reset/);
      const spent = await sums({ by: ["account"] });
      expect(spent["org"]).toBeCloseTo(30);
      expect(spent["org/team"]).toBeLessThanOrEqual(20.000001);
      expect(spent["org/team"]! + spent["org/other"]!).toBeCloseTo(30);
    });

    it.each([
      ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }, 429],
      ["/v1/responses", { input: "Hi" }, 429],
      ["/v1/messages", { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }, 402],
      ["/v1/images/generations", { prompt: "Hi", model: "up/draw" }, 429],
    ])("%s names the account, its budget, and the reset time", async (path, body, status) => {
      const answer = await ask(path, await made("empty"), { model: "up/model", ...body });
      const said = (await answer.json()) as { type?: string; error: Record<string, unknown> };
      expect(answer.status).toBe(status);
      const next = new Date();
      const back = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1)).toISOString();
      expect(said.error["message"]).toMatch(/account:empty/);
      expect(said.error["message"]).toContain("$0");
      expect(said.error["message"]).toContain(back);
      if (path === "/v1/messages")
        expect([said.type, said.error["type"]]).toEqual(["error", "billing_error"]);
      else expect(said.error["code"]).toBe("insufficient_quota");
    });

    it("a shared rate limit of an account rejects like a key's own", async () => {
      const answer = await ask("/v1/chat/completions", await made("slow"), {
        model: "up/model",
        messages: [{ role: "user", content: "Hi" }],
      });
      expect(answer.status).toBe(429);
      expect(await answer.text()).toMatch(/limit of 0 requests a minute \(account:slow\)/);
    });

    it("model lists of a key contain only the models that its account may use", async () => {
      const ids = async (key: string) => {
        const answer = await fetch(`${at.url}/v1/models`, {
          headers: { authorization: `Bearer ${key}` },
        });
        const { data } = (await answer.json()) as { data: { id: string }[] };
        return data.map(({ id }) => id.split("/")[0]!);
      };
      expect(new Set(await ids(await made("org")))).toEqual(new Set(["up", "away"]));
      expect(new Set(await ids(await made("other")))).toEqual(new Set(["up"]));
    });

    it("keys cannot use what their account cannot use", async () => {
      const answer = await ask("/v1/chat/completions", await made("other"), {
        model: "away/model",
        messages: [{ role: "user", content: "Hi" }],
      });
      expect(answer.status).toBe(403);
    });

    it("a key of an unknown account is not created, and a key of a revoked account cannot be used", async () => {
      await expect(made("tean")).rejects.toThrow(/Account "tean" not found.*"team"/);
      const key = await made("empty");
      await at.write(yaml(up.url, store).replace(/^ {2}empty:.*$/m, ""));
      await at.ask("reload");
      const { status, text } = await draw(key);
      expect([status, text.includes("unknown_account")]).toEqual([403, true]);
    });

    it("a moved team keeps its key, and its rows stay where they were", async () => {
      const before = await sums({ by: ["account"] });
      const key = await made("team");
      expect((await draw(key)).status).toBe(429);
      await at.write(
        yaml(up.url, store, "  new: { limits: [requests=9/day] }\n").replace(
          /^ {2}team:.*$/m,
          "  team: { parent: new }",
        ),
      );
      await at.ask("reload");
      expect((await draw(key)).status).toBe(200);
      expect(await sums({ by: ["account"] })).toEqual({
        ...before,
        new: expect.closeTo(1),
        "new/team": expect.closeTo(1),
      });
      // One of its keys leaves it: only later calls of that key count elsewhere.
      const { key: moving, secret } = (await at.ask("keys.create", {
        account: "team",
      })) as never as {
        key: { id: string };
        secret: string;
      };
      await at.ask("keys.move", { id: moving.id, account: "new" });
      expect((await draw(secret)).status).toBe(200);
      await at.ask("keys.move", { id: moving.id });
      expect((await draw(secret)).status).toBe(200);
      expect(await sums({ by: ["account"], key: moving.id })).toEqual({
        "": expect.closeTo(1),
        new: expect.closeTo(1),
      });
      await expect(at.ask("keys.move", { id: moving.id, account: "nwe" })).rejects.toThrow(/"new"/);
      const [row] = (
        (await at.ask("ledger.entries", { account: "new" })) as {
          items: { account: string; labels: object }[];
        }
      ).items;
      expect(row).toMatchObject({ account: "new/team", labels: {} });
    });
  },
);
