// An operation from a package: it compiles with public exports only, keeps the contract, and is
// routed, metered to the last token, and listed.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startUpstream } from "tollgate/testing";
import { startInProcess } from "../../kit/in-process.ts";
import {
  typeCheckPackage,
  checkPackage,
  createPackage,
  removeFolder,
} from "../../kit/process/third-party-package.ts";

let folder: string;
beforeAll(() => void (folder = createPackage("fingerprint", "tollgate-fingerprint")));
afterAll(() => removeFolder(folder));

describe("an operation from a package", () => {
  it.each([
    ["with every strictness", { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }],
    ["with neither, and declares itself", { declaration: true }],
  ])("compiles %s", async (_name, options) =>
    expect(await typeCheckPackage(folder, options)).toEqual([]),
  );

  it("keeps the contract, as a provider and as a frontend", async () =>
    expect(await checkPackage(folder)).toEqual([]));

  it("is routed in both modes, metered exactly, and listed", async () => {
    const body = JSON.stringify({
      object: "list",
      data: [
        { object: "fingerprint", index: 0, fingerprint: [0.25, -1] },
        { object: "fingerprint", index: 1, fingerprint: [1, 0.5] },
      ],
      usage: { prompt_tokens: 7, total_tokens: 7 },
    });
    await using up = await startUpstream({
      "*": { body, headers: { "content-type": "application/json" } },
    });
    const mounted = (passes: boolean) =>
      `{ use: ./src/provider.ts, with: { base_url: "${up.url}/v1", api_key: sk-up, passes: ${passes} } }`;
    await using gateway = await startInProcess({
      dir: folder,
      yaml: `frontends: [chat-completions, models, ./src/frontend.ts, ./src/both.ts]
providers:
  demo: { use: demo }
  passing: ${mounted(true)}
  turned: ${mounted(false)}
`,
    });
    const headers = {
      "content-type": "application/json",
      authorization: `Bearer ${gateway.key}`,
    };
    const ask = async (path: string, asked: object) => {
      const res = await fetch(`${gateway.url}${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(asked),
      });
      return { status: res.status, body: (await res.json()) as any };
    };
    for (const provider of ["passing", "turned"]) {
      const got = await ask("/v1/fingerprints", {
        model: `${provider}/small`,
        input: ["one", "two"],
      });
      expect(got).toMatchObject({
        status: 200,
        body: {
          data: [
            { index: 0, fingerprint: [0.25, -1] },
            { index: 1, fingerprint: [1, 0.5] },
          ],
          usage: { prompt_tokens: 7 },
        },
      });
    }
    const { items } = (await gateway.ask("ledger.entries", { limit: 100 })) as any;
    const rows = items.filter((row: any) => row.kind === "settle");
    expect(
      rows.map(({ state, usage, costNano }: any) => ({ state, usage, cost: String(costNano) })),
    ).toEqual([
      { state: "exact", usage: { input: 7 }, cost: "140" },
      { state: "exact", usage: { input: 7 }, cost: "140" },
    ]);

    const models = async (query: string) => {
      const res = await fetch(`${gateway.url}/v1/models${query}`, { headers });
      return ((await res.json()) as any).data as any[];
    };
    const listed = await models("?operation=fingerprint");
    expect(listed.map(({ id, operation }) => [id, operation])).toEqual([
      ["passing/small", "fingerprint"],
      ["turned/small", "fingerprint"],
    ]);

    // Each model type has its own suggestion, and an unlisted model is not forwarded.
    expect(await ask("/v1/fingerprints", { model: "demo/echo", input: "x" })).toMatchObject({
      status: 400,
      body: {
        error: {
          message: "demo/echo is a chat model. Send requests for it to /v1/chat/completions.",
        },
      },
    });
    const chat = { messages: [{ role: "user", content: "hi" }], model: "passing/small" };
    expect((await ask("/v1/chat/completions", chat)).body.error.message).toBe(
      "passing/small is a fingerprint model. Send requests for it to /v1/fingerprints.",
    );
    // A frontend may use another protocol on one of its routes, including errors.
    const asked = { model: "turned/small", input: "x", messages: chat.messages };
    expect((await ask("/both/prints", asked)).body.data[0].fingerprint).toEqual([0.25, -1]);
    expect((await ask("/both/chat", { ...asked, model: "demo/echo" })).body.object).toBe(
      "chat.completion",
    );
    expect((await ask("/both/prints", { model: "turned/small" })).body.error).toMatchObject({
      message: "/input is required.",
      type: "invalid",
    });
    const strange = await ask("/v1/fingerprints", { model: "passing/unheard-of", input: "x" });
    expect(strange.status).toBe(404);
  });
});
