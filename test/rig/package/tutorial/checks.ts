// Checks the effect of each step of docs/tutorials/first-hour.md, by its heading.
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Typed } from "./shell.ts";

export interface Hour {
  /** The folder that the page makes. */
  readonly gate: string;
  /** What `npm install` brings first, and what it brings later. */
  readonly versions: readonly [last: string, next: string];
}

/** What is wrong, in words. */
type Check = (of: Hour, typed: Typed) => string[] | Promise<string[]>;

const ADMIN = "http://127.0.0.1:9787";

/** Five tokens in and five out, at the price that the page writes. */
const SPENT = 0.00005;

const unless = (holds: unknown, words: string): string[] => (holds ? [] : [words]);

function json(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

async function signsIn(output: string): Promise<string[]> {
  const code = /#([\w-]+)/.exec(output)?.[1] ?? "";
  const page = await fetch(`${ADMIN}/`);
  const text = await page.text();
  const enter = () =>
    fetch(`${ADMIN}/admin/v1/session`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: ADMIN, "x-tollgate-console": "1" },
      body: JSON.stringify({ code }),
    });
  const [first, second] = [await enter(), await enter()];
  return [
    ...unless(page.status === 200 && text.includes("<script"), `the page is a ${page.status}`),
    ...unless(first.status === 200, `the link is a ${first.status}: ${await first.text()}`),
    ...unless(first.headers.get("set-cookie")?.includes("HttpOnly"), "it brings no cookie"),
    ...unless(second.status === 401, `the link works again: ${second.status}`),
  ];
}

export const CHECKS: Readonly<Record<string, Check>> = {
  "Install Tollgate": ({ gate, versions }, { output }) => {
    const file = join(gate, "gateway.yaml");
    const schema = /\$schema=(.*)/.exec(readFileSync(file, "utf8"))?.[1] ?? "";
    const there = json(readFileSync(join(gate, "node_modules/tollgate/package.json"), "utf8"));
    return [
      ...unless(there["version"] === versions[0], `npm brought ${String(there["version"])}`),
      ...unless(existsSync(join(gate, schema)), `editors would look for ${schema}`),
      ...unless(output.includes("Wrote gateway.yaml"), `init said: ${output}`),
    ];
  },
  "Send the first request": (_, typed) =>
    unless(typed.output.includes('"content":"Hello, gate."'), `it answers: ${typed.output}`),
  "Open the console": (_, { output }) => signsIn(output),
  "Create a key for a team": (_, typed) =>
    unless(typed.output.includes('"content":"Hello, gate."'), `it answers: ${typed.output}`),
  "Exceed the budget": (_, { output }) => [
    ...unless(output.includes('"code":"insufficient_quota"'), `it is not refused: ${output}`),
    ...unless(output.includes("(account:web)"), `it does not name the account: ${output}`),
    ...unless(/web +demo\/echo +1 .*\$0\.00005\b/.test(output), `the report says: ${output}`),
  ],
  "Enable metrics": (_, { output }) => {
    const spent = [...output.matchAll(/^tollgate_spend_usd_total\{.*\} (\S+)$/gm)];
    const sum = spent.reduce((all, [, usd]) => all + Number(usd), 0);
    return unless(
      Math.abs(sum - SPENT) < 1e-12,
      `the scrape says $${sum} were spent: ${output.slice(0, 300)}`,
    );
  },
  "Create a backup": ({ gate }, { output }) => {
    const { mode, size } = statSync(join(gate, "monday.tar"));
    return [
      ...unless((mode & 0o077) === 0 && size > 10_000, "others may read it, or it is empty"),
      ...unless(/head +[0-9a-f]{64}/.test(output), "it names no head"),
    ];
  },
  "Upgrade without dropping a stream": ({ gate, versions: [last, next] }, { output }) => {
    const stream = readFileSync(join(gate, "stream.txt"), "utf8");
    return [
      ...unless(output.includes(`Version ${next} serves`), `no version ${next}: ${output}`),
      ...unless(
        new RegExp(`Version ${last.replaceAll(".", "\\.")}, pid \\d+, exits after`).test(output),
        `nothing was open at the upgrade: ${output}`,
      ),
      ...unless(
        stream.includes('"finish_reason":"stop"') && stream.endsWith("data: [DONE]\n\n"),
        `the stream was cut: ${stream.slice(-200)}`,
      ),
      ...unless(
        new RegExp(`version +${next.replaceAll(".", "\\.")},`).test(output),
        "status has another version",
      ),
    ];
  },
  "Restore the backup in a second place": ({ gate }, { output }) =>
    output.includes("verified")
      ? []
      : [
          ...unless(existsSync(join(gate, "elsewhere/.tollgate")), "nothing is restored"),
          ...unless(
            output.replaceAll(" ", "").includes('"used":"0.0001"'),
            `the team has not spent what it had spent: ${output}`,
          ),
          ...unless(/^verified +/m.test(output), `verify said: ${output}`),
        ],
};
