// Builds and signs the price document.
//
//     node --conditions=tollgate-source .build/prices.ts build --version 12 --out prices.json \
//       --litellm list.json@2026-07-24 --openrouter models.json@2026-08-01
//     node --conditions=tollgate-source .build/prices.ts sign prices.json --out tollgate-prices.txt
//     node --conditions=tollgate-source .build/prices.ts key
//
// `sign` reads the private key in PEM from the variable TOLLGATE_PRICES_KEY. `key` creates one.
// `build` prints how many models and figures two sources agree on, and every disagreement.
import { createHash, generateKeyPairSync } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import type { Facts } from "tollgate/plugin";
import {
  formatPublicKey,
  readDocument,
  signDocument,
} from "../src/catalog/prices/price-document.ts";
import { TARGET } from "./facts.ts";
import { assemble, type AssembleInput, type Report } from "./prices/assemble.ts";
import { readLitellm, readOpenrouter } from "./prices/sources.ts";

const LITELLM_URL =
  "https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json";
const OPENROUTER_URL = "https://openrouter.ai/api/v1/models";

/** Returns the facts that ship with the providers, by the name of the provider's plugin. */
export const ownFacts = (): Map<string, Facts> =>
  new Map(
    readdirSync(TARGET)
      .filter((name) => name.endsWith(".json"))
      .map((name) => [
        basename(name, ".json"),
        JSON.parse(readFileSync(join(TARGET, name), "utf8")) as Facts,
      ]),
  );

export function formatReport({
  models,
  priced,
  agreed,
  figures,
  agreedFigures,
  disagreements,
  skipped,
}: Report): string {
  const share = (part: number, all: number) =>
    all === 0 ? "0%" : `${((100 * part) / all).toFixed(1)}%`;
  return [
    `${models} models, ${priced} with a price`,
    `${agreed} models (${share(agreed, priced)}) with main rates that two sources agree on`,
    `${agreedFigures} of ${figures} figures (${share(agreedFigures, figures)}) that two sources agree on`,
    `${skipped.length} rates that a price cannot express`,
    `${disagreements.length} disagreements`,
    ...disagreements.map(
      ({ model, figure, usd, used }) =>
        `  ${model} ${figure}: ${Object.entries(usd)
          .map(([source, value]) => `${source} ${value}`)
          .join(", ")} (used: ${used})`,
    ),
  ].join("\n");
}

/** A file and the date on which it was retrieved: "list.json@2026-07-24". */
function readList(text: string): { readonly content: string; readonly retrieved: string } {
  const [, file, retrieved] = /^(.+)@(\d{4}-\d\d-\d\d)$/.exec(text) ?? [];
  if (file === undefined) throw new Error(`${text} does not end with @ and the date of retrieval`);
  return { content: readFileSync(file, "utf8"), retrieved: retrieved! };
}

if (import.meta.main) {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      version: { type: "string" },
      out: { type: "string" },
      litellm: { type: "string" },
      openrouter: { type: "string" },
    },
  });
  const [command, file] = positionals;
  if (command === "build") {
    const sources: [
      string,
      AssembleInput["sources"] extends ReadonlyMap<string, infer S> ? S : never,
    ][] = [];
    if (values.litellm !== undefined) {
      const { content, retrieved } = readList(values.litellm);
      sources.push(["litellm", { list: readLitellm(content), url: LITELLM_URL, retrieved }]);
    }
    if (values.openrouter !== undefined) {
      const { content, retrieved } = readList(values.openrouter);
      sources.push([
        "openrouter",
        { list: readOpenrouter(content), url: OPENROUTER_URL, retrieved },
      ]);
    }
    const { text, report } = assemble({
      version: Number(values.version),
      issued: new Date().toISOString(),
      own: ownFacts(),
      sources: new Map(sources),
    });
    // A gateway would reject an invalid document, so it is never published.
    readDocument(text, createHash("sha256").update(text).digest("hex"), Date.now());
    writeFileSync(values.out!, text);
    console.log(formatReport(report));
  } else if (command === "sign") {
    const key = process.env["TOLLGATE_PRICES_KEY"]!;
    writeFileSync(values.out!, signDocument(readFileSync(file!, "utf8"), [key]));
    console.log(`signed with ${formatPublicKey(key)}`);
  } else if (command === "key") {
    const { privateKey } = generateKeyPairSync("ed25519");
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    console.log(`${pem}${formatPublicKey(pem)}`);
  } else throw new Error("use build, sign, or key");
}
