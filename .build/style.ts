// `npm run style`: checks the style of all text that people read, by the rules of the style guide. No
// file may have a finding.
//
//     npm run style                        all findings, and their number by rule
//     npm run style -- src/pipeline        findings below a path
//     npm run style -- --sample 240 --seed 7   a random sample of sentences, for a review by a person
import { parseArgs } from "node:util";
import { judge, type Finding } from "./style/rules.ts";
import { readSentences, sample } from "./style/sentences.ts";

export const formatFinding = ({ file, line, rule, words, instead }: Finding): string =>
  `${file}:${line}  ${rule}: "${words}" → ${instead}`;

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
  const findings = checkStyle().filter(
    ({ file }) => positionals.length === 0 || positionals.some((path) => file.startsWith(path)),
  );
  for (const finding of findings) console.log(formatFinding(finding));
  console.log(`\n${findings.length} findings\n${count(findings.map(({ rule }) => rule))}`);
  if (findings.length > 0) process.exitCode = 1;
}

if (import.meta.main) main();
