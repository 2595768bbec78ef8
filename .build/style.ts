// `npm run style`: checks the style of all text that people read, by the rules of the style guide.
// Each file may have as many findings as .build/style/budget.json allows, so that old text can be
// mended step by step and no new finding is added.
//
//     npm run style                        findings beyond the budget, and their number by rule
//     npm run style -- src/pipeline        every finding below a path
//     npm run style -- --ratchet           lower the budget to the findings that are left
//     npm run style -- --sample 240 --seed 7   a random sample of sentences, for a review by a person
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { judge, type Finding } from "./style/rules.ts";
import { readSentences, ROOT, sample } from "./style/sentences.ts";

const BUDGET_FILE = join(ROOT, ".build/style/budget.json");

/** Number of findings that a file may have. A file that is not listed may have none. */
export type Budget = Readonly<Record<string, number>>;

export const readBudget = (): Budget => JSON.parse(readFileSync(BUDGET_FILE, "utf8")) as Budget;

export const formatFinding = ({ file, line, rule, words, instead }: Finding): string =>
  `${file}:${line}  ${rule}: "${words}" → ${instead}`;

/** Returns the findings of files that have more than their budget. */
export function beyondBudget(findings: readonly Finding[], budget: Budget): Finding[] {
  const byFile = Map.groupBy(findings, ({ file }) => file);
  return [...byFile].flatMap(([file, own]) => (own.length > (budget[file] ?? 0) ? own : []));
}

/** Returns the budget after the findings that are left. An entry never rises. */
export function lowered(budget: Budget, findings: readonly Finding[]): Budget {
  const byFile = Map.groupBy(findings, ({ file }) => file);
  return Object.fromEntries(
    Object.entries(budget)
      .map(([file, most]) => [file, Math.min(most, byFile.get(file)?.length ?? 0)] as const)
      .filter(([, most]) => most > 0),
  );
}

export const checkStyle = (): Finding[] => readSentences().flatMap(judge);

const count = (names: readonly string[]): string =>
  [...Map.groupBy(names, (name) => name)]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([name, all]) => `${String(all.length).padStart(6)}  ${name}`)
    .join("\n");

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ratchet: { type: "boolean", default: false },
      sample: { type: "string" },
      seed: { type: "string", default: "1" },
    },
  });
  if (values.sample !== undefined) {
    const drawn = sample(readSentences(), Number(values.sample), Number(values.seed));
    for (const [i, { file, line, text }] of drawn.entries())
      console.log(`${i + 1}. ${text} (${file}:${line})`);
    return;
  }
  const findings = checkStyle();
  const budget = readBudget();
  if (values.ratchet) {
    const next = lowered(budget, findings);
    writeFileSync(BUDGET_FILE, `${JSON.stringify(next, undefined, 2)}\n`);
  }
  const shown =
    positionals.length > 0
      ? findings.filter(({ file }) => positionals.some((path) => file.startsWith(path)))
      : beyondBudget(findings, budget);
  for (const finding of shown) console.log(formatFinding(finding));
  console.log(`\n${findings.length} findings\n${count(findings.map(({ rule }) => rule))}`);
  if (positionals.length === 0 && shown.length > 0) process.exitCode = 1;
}

if (import.meta.main) main();
