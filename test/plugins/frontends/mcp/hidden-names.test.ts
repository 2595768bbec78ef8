// Names of tools that a client may not call, in everything that a server writes.
import fc from "fast-check";
import { expect, it } from "vitest";
import { HiddenNames } from "../../../../plugins/frontends/mcp/hidden-names.ts";
import {
  finalMessage,
  modernMessage,
  rpc,
  SESSION,
  startFrontend,
  type MemoryServer,
} from "./memory-frontend.ts";

type Json = Record<string, any>;

const tool = (name: string) => ({ name, inputSchema: { type: "object" } });
/** A key that may call one tool of the server. */
const SOME = { path: "one", key: "some", tools: ["one/run_it"] } as const;
const METHOD_NOT_FOUND = { error: { code: -32_601, message: "Method not found" } };

/** A server with a tool that the key may call, and with hidden ones. */
const serverOf = (more: Partial<MemoryServer> = {}): MemoryServer => ({
  kind: "modern",
  tools: ["run_it", "deploy", "drop_table"].map(tool),
  call: () => rpc("ID", { result: { content: [] } }),
  ...more,
});

async function ask(
  server: MemoryServer,
  method: string,
  params: Json = {},
  of: Json = SOME,
): Promise<Json> {
  const frontend = await startFrontend({ one: server });
  await using _ = frontend.test;
  const { body, headers } = modernMessage(method, params);
  return finalMessage(await frontend.post(body, { ...of, headers }));
}

const word = fc.stringMatching(/^[A-Za-z0-9_.-]{1,6}$/);
const joint = fc.constantFrom("/", ":", " ", " / ", "é", "工", "\\", "$(|)*", "\u{1F309}");
const phrase = fc
  .tuple(fc.array(fc.tuple(word, joint), { minLength: 1, maxLength: 3 }), word)
  .map(([parts, last]) => `${parts.flat().join("")}${last}`)
  .filter((name) => /[\p{L}\p{N}]/u.test(name));

it("law: no name that is not one word remains in a text", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(phrase, { minLength: 1, maxLength: 5 }),
      fc.array(word, { minLength: 6, maxLength: 6 }),
      (names, words) => {
        const text = names.map((name, at) => `${words[at]} "${name}" `).join("");
        const clean = new HiddenNames(names).removeFrom(text, { isError: true });
        for (const name of names) expect(clean).not.toContain(`"${name}"`);
      },
    ),
    { numRuns: 200 },
  );
});

it.each([
  ["Use repo/delete.", "Use [tool]."],
  ["Use repo/delete-all or xrepo/delete.", "Use [tool] or xrepo/delete."],
  ["Run admin:drop, then Löschen.", "Run [tool], then [tool]."],
  ["Run new file in a new filesystem.", "Run [tool] in a new filesystem."],
  ["请使用删除工具。", "请使用[tool]工具。"],
  ["xa b c, then new file listing.", "xa [tool], then [tool] listing."],
])("%s", (text, clean) => {
  const names = [
    "repo/delete",
    "repo/delete-all",
    "admin:drop",
    "Löschen",
    "new file",
    "new file list",
    "a b",
    "b c",
    "删除",
    "a",
  ];
  const hidden = new HiddenNames(names);
  expect(hidden.removeFrom(text, { isError: true })).toBe(clean);
});

it("a very long name does not remain whole", () => {
  const name = `run-${"x".repeat(200)}`;
  expect(new HiddenNames([name]).removeFrom(`Use ${name}.`)).toBe(`Use [tool]${"x".repeat(76)}.`);
});

it("an error of a tool contains no hidden names, and its binary data is unchanged", async () => {
  const data = "deploy/drop_table/";
  const server = serverOf({
    tools: ["run_it", "deploy", "drop_table", "text", "complete"].map(tool),
    call: () =>
      rpc("ID", {
        result: {
          resultType: "complete",
          isError: true,
          content: [
            { type: "text", text: "Use deploy." },
            { type: "image", mimeType: "image/png", data },
            { type: "resource", resource: { uri: "file:///a", blob: data } },
          ],
          structuredContent: { next: ["deploy", { data: "drop_table" }] },
          _meta: { hint: "deploy" },
        },
      }),
  });
  const { result } = await ask(server, "tools/call", { name: "run_it" });
  expect(result).toMatchObject({
    resultType: "complete",
    isError: true,
    content: [
      { type: "text", text: "Use [tool]." },
      { type: "image", mimeType: "image/png", data },
      { type: "resource", resource: { uri: "file:///a", blob: data } },
    ],
    structuredContent: { next: ["[tool]", { data: "[tool]" }] },
    _meta: { hint: "[tool]" },
  });
});

it("a completion contains no hidden names", async () => {
  const server = serverOf({
    prompts: [{ name: "ask" }],
    rules: { tools: { deny: ["deploy"] } },
    override: ({ id, method }) =>
      method === "completion/complete"
        ? rpc(id, { result: { completion: { values: ["deploy", "develop"] } } })
        : undefined,
  });
  const params = { ref: { type: "ref/prompt", name: "ask" }, argument: { name: "a", value: "de" } };
  const { result } = await ask(server, "completion/complete", params, { path: "one" });
  expect(result["completion"]).toEqual({ values: ["[tool]", "develop"] });
});

it.each(["modern", "session"] as const)(
  "prompts of a %s server without tools do not depend on its list of tools",
  async (kind) => {
    const server = serverOf({
      kind,
      tools: [],
      prompts: [{ name: "ask" }],
      rules: { tools: { deny: ["x"] } },
      capabilities: { prompts: {} },
      override: ({ id, method }) =>
        method === "tools/list"
          ? rpc(id, METHOD_NOT_FOUND)
          : method === "prompts/get"
            ? rpc(id, { error: { code: -32_602, message: "Missing argument." } })
            : undefined,
    });
    const of = { path: "one" };
    expect((await ask(server, "prompts/list", {}, of)).result["prompts"]).toEqual([
      { name: "ask" },
    ]);
    expect((await ask(server, "tools/list", {}, of)).result["tools"]).toEqual([]);
    const { error } = await ask(server, "prompts/get", { name: "ask" }, of);
    expect(error).toEqual({ code: -32_602, message: "Missing argument." });
    // A server that states tools can name them.
    const stating = { ...server, capabilities: { prompts: {}, tools: {} } };
    expect((await ask(stating, "prompts/list", {}, of)).error).toBeDefined();
  },
);

it("an error of the server at initialize contains no hidden names", async () => {
  let isBroken = false;
  const server = serverOf({
    override: ({ id, method }) =>
      isBroken && method === "server/discover"
        ? rpc(id, { error: { code: -32_020, message: "No. Try drop_table." } })
        : undefined,
  });
  const { test, post } = await startFrontend({ one: server });
  await using _ = test;
  const list = modernMessage("tools/list", {});
  await post(list.body, { ...SOME, headers: list.headers });
  isBroken = true;
  const params = { protocolVersion: SESSION, capabilities: {}, clientInfo: { name: "c" } };
  const got = await post({ jsonrpc: "2.0", id: 7, method: "initialize", params }, SOME);
  expect(finalMessage(got)).toEqual({
    jsonrpc: "2.0",
    id: 7,
    error: { code: -32_603, message: "No. Try [tool]." },
  });
});

it.each([
  ["isError", "exact", { isError: true, content: [{ type: "text", text: "Use deploy." }] }],
  [
    "input_required",
    "void",
    {
      resultType: "input_required",
      inputRequests: { one: { method: "elicitation/create", params: { message: "deploy?" } } },
    },
  ],
])("a result '%s' is billed if the list of tools cannot be read after it", async (_, state, of) => {
  for (const inSession of [false, true]) {
    let isListed = true;
    const server = serverOf({
      override: ({ id, method }) => {
        if (method === "tools/call") isListed = false;
        if (method !== "tools/list") return undefined;
        // The list is valid for no time, as after a notification that it has changed.
        const list = { tools: ["run_it", "deploy"].map(tool), ttlMs: 1e-9 };
        return rpc(id, isListed ? { result: list } : METHOD_NOT_FOUND);
      },
      call: () => rpc("ID", { result: of }),
    });
    const { test, post } = await startFrontend({ one: server });
    await using _ = test;
    const params = { protocolVersion: SESSION, capabilities: {}, clientInfo: { name: "c" } };
    const opened = await post({ jsonrpc: "2.0", id: 0, method: "initialize", params }, SOME);
    const { body, headers } = modernMessage("tools/call", { name: "run_it" });
    const got = inSession
      ? await post(
          { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "run_it" } },
          { ...SOME, headers: { "mcp-session-id": opened.headers["mcp-session-id"] } },
        )
      : await post(body, { ...SOME, headers });
    expect(test.openedCalls.map(({ result }) => result)).toEqual([{ outcome: "ok", state }]);
    expect(finalMessage(got)["result"]).toMatchObject({
      isError: true,
      content: [{ type: "text", text: expect.stringContaining("may not call") }],
    });
  }
});
