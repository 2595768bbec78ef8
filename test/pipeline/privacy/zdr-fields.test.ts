// Under Service-ZDR, fields that are not on the allowlist are not sent. Current requests of clients
// are on the allowlist, by name with the reason, and work.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rowProviders } from "../../../plugins/providers/provider-rows.ts";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import {
  mergeAllowlist as cleared,
  parseAllowances,
  hostedToolFeatures,
  findDisallowedField,
} from "tollgate/protocols/references";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { getFault, type Call, type AllowedContent, type AllowedFields } from "tollgate/plugin";
import { createCallContext, createTestContext, createOutgoing } from "tollgate/testing";
import { SENT } from "./client-requests.ts";
import { ROADS, roads, type Roads } from "../protocol-pairs.ts";

let all: Roads;
beforeAll(async () => {
  all = await roads();
});
afterAll(() => all[Symbol.asyncDispose]());

const required = { "service-zdr": "required" };
/** For an endpoint with a reviewed policy, only fields listed by its provider store data. */
const dataPolicy = {
  retention: { kind: "days", days: 30 },
  trains: "no",
  zeroWhen: "credential",
  stateful: ["hosted.code_execution"],
} as const;

describe.each(SENT)("%s", (_name, from, body) => {
  // A parameter that another protocol does not know is treated like any unknown field.
  const roads = ROADS.filter(([a, b]) => a === from && (!("min_p" in body) || a === b));
  it.each(roads)("works under `required`, from %s to %s", async (_from, into) => {
    await using road = await all.open(from, { dataPolicy });
    const plain = await road.send(into, { ...body, model: `${into}/m` });
    const secret = await road.send(into, { ...body, model: `${into}/m` }, required);
    expect(secret.error?.message ?? "").not.toMatch(/Service-ZDR/);
    expect(secret.status).toBe(plain.status);
    expect(secret.text !== "").toBe(plain.text !== "");
  });

  it("is forwarded byte for byte if nothing has to be hidden", async () => {
    await using road = await all.open(from, { dataPolicy });
    const { text, status } = await road.send(from, { ...body, model: `${from}/m` }, required);
    expect(status).toBe(200);
    for (const field of Object.keys(body).filter(
      (f) => !["system", "previous_response_id"].includes(f),
    ))
      expect(text).toContain(`"${field}"`);
  });
});

describe("the operator's allowlist", () => {
  it("accepts the YAML from the error, and it suffices", async () => {
    const odd = {
      brand_new: { deep: 1 },
      messages: [{ role: "user", content: [{ type: "text", text: "x", newer: 1 }] }],
    };
    const refused: string[] = [];
    for (let n = 0; n < 5; n++) {
      await using road = await all.open("chat-completions", { zdrAllowedFields: refused });
      const { error, text } = await road.send("chat-completions", odd, required);
      if (!error) {
        expect(text).toContain('"newer":1');
        expect(text).toContain('"brand_new":{"deep":1}');
        break;
      }
      expect([error.code, text]).toEqual(["zdr_unknown_field", ""]);
      refused.push(JSON.parse(/zdr_allowed_fields: \[(".*?")\]/.exec(error.message)![1]!));
    }
    expect(refused.toSorted()).toEqual(["brand_new", "messages[].content[].newer"]);
  });

  it("allows no hosted tool, no stored state, and no other model", async () => {
    const zdrAllowedFields = ["tools", "previous_response_id", "models", "mcp_servers", "plugins"];
    await using road = await all.open("chat-completions", {
      zdrAllowedFields,
      identity: { models: ["*/m"] },
    });
    for (const fields of [
      { tools: [{ type: "mcp", server_url: "https://e" }] },
      { previous_response_id: "resp_1" },
      { models: ["other"] },
      { mcp_servers: [{ url: "https://e" }] },
      { plugins: [{ id: "web" }] },
    ])
      expect((await road.send("chat-completions", fields, required)).text).toBe("");
  });
});

describe("each field that a provider's row adds is on the allowlist", () => {
  const words = { role: "user", content: "Hi" };
  const function_ = { name: "f", parameters: { type: "object" } };
  const BODIES: { readonly [protocol: string]: readonly object[] } = {
    "chat-completions": ["none", "low", "high"].flatMap((effort) =>
      [true, false].map((stream) => ({
        model: "m",
        messages: [words, { role: "assistant", content: "x", reasoning_content: "r" }, words],
        tools: [{ type: "function", function: function_ }],
        max_completion_tokens: 10,
        reasoning_effort: effort,
        stream,
      })),
    ),
    messages: [{ model: "m", max_tokens: 10, messages: [words], thinking: { type: "adaptive" } }],
    responses: [{ model: "m", input: "Hi", reasoning: { effort: "low" } }],
    images: [{ model: "m", prompt: "x", size: "1024x1024", n: 1, quality: "high" }],
  };
  it.each(Object.entries(rowProviders))("%s", async (_name, row) => {
    const options = { base_url: row.options?.properties?.["base_url"]?.default ?? "http://e/v1" };
    const { endpoints } = await row.setup(
      options as never,
      createTestContext({ id: "p" }) as never,
    );
    for (const endpoint of endpoints) {
      if (!("protocol" in endpoint)) continue;
      const { protocol } = endpoint;
      for (const body of BODIES[protocol.id] ?? []) {
        const of = createCallContext({
          model: "m",
          stream: (body as { stream?: boolean }).stream === true,
        });
        const out = createOutgoing(body as never);
        try {
          protocol.client!.prepare?.(out, of);
          endpoint.prepare?.(out, of as unknown as Call);
        } catch (error) {
          if (!getFault(error)) throw error;
          continue;
        }
        const found = findDisallowedField(
          out.body!,
          cleared(protocol.zdrAllowedFields!),
          parseAllowances([]),
        );
        expect(found, `${protocol.id}: ${JSON.stringify(out.body)}`).toBeUndefined();
      }
    }
  });
});

describe("every hosted tool on the allowlist has an entry in each data policy", () => {
  const protocols = [chatCompletions(), messages(), responses(), gemini(), images()];
  const hosted = new Set(
    protocols.flatMap(({ zdrAllowedFields }) =>
      typesIn(cleared(zdrAllowedFields!)["tools"]).flatMap((type) =>
        ["20250305", "20260318"].flatMap(
          (day) => hostedToolFeatures({ type: type.replace("*", day) }) ?? [],
        ),
      ),
    ),
  );
  /** Reviewed with the policy: these store nothing there. */
  const SAFE: { readonly [provider: string]: readonly string[] } = {
    anthropic: [
      "hosted.apply_patch",
      "hosted.local_shell",
      "hosted.tool_search",
      "hosted.tool_search_tool_bm25",
      "hosted.tool_search_tool_regex",
      "hosted.web_fetch",
      "hosted.web_search",
      "hosted.web_search_preview",
    ],
    openai: [
      "hosted.apply_patch",
      "hosted.code_execution",
      "hosted.tool_search",
      "hosted.tool_search_tool_bm25",
      "hosted.tool_search_tool_regex",
      "hosted.web_fetch",
      "hosted.web_search",
      "hosted.web_search_preview",
    ],
  };
  const folder = join(import.meta.dirname, "../../../plugins/providers/policy");
  const listed = readdirSync(folder).flatMap((file) => {
    const { dataPolicy: said } = JSON.parse(readFileSync(join(folder, file), "utf8"));
    return said.stateful ? [[file.replace(".json", ""), said.stateful as string[]] as const] : [];
  });
  it.each(listed)("%s", (name, stateful) => {
    expect(hosted.size).toBeGreaterThan(5);
    const unsaid = [...hosted].filter((f) => !stateful.includes(f) && !SAFE[name]?.includes(f));
    expect(unsaid).toEqual([]);
  });
});

function typesIn(inside: AllowedContent | undefined): string[] {
  if (inside === undefined || typeof inside === "string") return [];
  if (!Array.isArray(inside)) return [];
  const [, types] = inside as readonly [string | null, { readonly [type: string]: AllowedFields }];
  return Object.entries(types).flatMap(([type, within]) => [
    type,
    ...(typeof within === "object" ? typesIn(within["tools"]) : []),
  ]);
}
