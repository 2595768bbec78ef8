// Runs the conformance checks for third parties on all plugins in plugins/. The cheap checks run
// with every commit, and the dear ones in the nightly tier.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "vitest";
import type { Definition } from "tollgate/plugin";
import { conformanceChecks, type Check } from "tollgate/testing";
import { builtin } from "../../plugins/index.ts";
import { BATCH_FORMATS } from "./batches/formats.ts";
import { VIDEO_FORMATS } from "./videos/formats.ts";

/** Options without a default. Everything else is the result of a bare `use:`. */
const WITH: Readonly<Record<string, unknown>> = {
  base_url: "http://127.0.0.1:9/v1",
  receivers: { chat: { url: "http://127.0.0.1:9", format: "slack" } },
  public_url: "http://127.0.0.1:9",
  oidc: { issuer: "http://127.0.0.1:9", client_id: "tollgate" },
  names: { "batch.example": { models: ["demo/*"] } },
  bills: { demo: { from: "openai", key: "k" } },
  issuers: { corp: { issuer: "https://x", audience: ["a"], jwks: "http://127.0.0.1:9/jwks" } },
};

const PLUGINS = Object.entries(builtin).flatMap(([kind, all]) =>
  Object.entries(all).map(([name, load]): [string, string, () => Promise<unknown>] => [
    kind,
    name,
    load,
  ]),
);

/**
 * Formats that the kit's upstream does not support are recorded next to the tests of their
 * protocol. Vendor dialects and native endpoints have tests of their own.
 */
const RECORDED = mkdtempSync(join(tmpdir(), "tollgate-recorded-"));
const recorded = (protocol: string, as = protocol) =>
  symlinkSync(join(import.meta.dirname, "../fixtures/recordings", protocol), join(RECORDED, as));
for (const protocol of [
  "gemini",
  "gemini-image",
  "gemini-embedding",
  "gemini-single-embedding",
  "images",
  "embeddings",
  "moderations",
  "speech",
  "transcriptions",
])
  recorded(protocol);
// Google's images are requested one by one without streaming, by the provider's own code.
mkdirSync(join(RECORDED, "native/whole"), { recursive: true });
for (const file of ["request.json", "upstream.http"])
  recorded(`gemini-image/whole/${file}`, `native/whole/${file}`);
writeFileSync(join(RECORDED, "native/whole/expected.json"), '{ "finish": "stop" }');
// Several test files of one process may use the copies.
process.once("exit", () => rmSync(RECORDED, { recursive: true }));
const OWN_DIALECT = ["google", "openai"];

/** A unique value for every field of a credential. */
function canaries(definition: Definition): Record<string, unknown> {
  const schema = "credential" in definition ? definition.credential : undefined;
  return Object.fromEntries(
    Object.keys(schema?.properties ?? {}).map((field) => [field, `canary-7f3a-${field}`]),
  );
}

/** Checks that replay recorded responses, which costs up to several seconds for each provider. */
const DEAR =
  /decoders pass the protocol checks|receive the upstream.s responses unchanged|secrets do not appear/;
export const isDear = (check: Check): boolean => DEAR.test(check.name);

/** Runs the selected checks of every built-in plugin. */
export function checkBuiltins(isSelected: (check: Check) => boolean): void {
  describe.each(PLUGINS)("%s %s", async (_kind, name, load) => {
    const recordings = OWN_DIALECT.includes(name) && RECORDED;
    const { default: definition } = (await load()) as { default: Definition };
    const required = (definition.options?.["required"] ?? []) as string[];
    const given = {
      ...Object.fromEntries(required.map((option) => [option, WITH[option]])),
      // Another test checks its lines.
      ...(name === "access-log" && { file: "/dev/null" }),
    };
    const credential = canaries(definition);
    for (const check of conformanceChecks(definition, {
      with: given,
      credential,
      recordings,
      ...(BATCH_FORMATS[name] && { batches: BATCH_FORMATS[name] }),
      ...(VIDEO_FORMATS[name] && { videos: VIDEO_FORMATS[name] }),
    }).filter(isSelected))
      it(check.name, check.run);
  });
}
