// Tests that work is linear (test/protocols/linear), with more pieces than every run can afford.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Rig } from "../rig.ts";

const root = new URL("../../..", import.meta.url).pathname;

export const rig: Rig = {
  options: { pieces: 8_000, only: "" },
  async run({ pieces, only }, say) {
    const failed: string[] = [];
    const folder = mkdtempSync(join(tmpdir(), "tollgate-linear-"));
    const report = join(folder, "report.json");
    const child = spawn(
      join(root, "node_modules/.bin/vitest"),
      [
        "run",
        "--config=test/vitest.config.ts",
        "--testTimeout=600000",
        "--reporter=json",
        `--outputFile.json=${report}`,
        ...(only ? [`--testNamePattern=${only}`] : []),
        "test/protocols/linear/linear.test.ts",
      ],
      {
        cwd: root,
        env: { ...process.env, LINEAR_PIECES: pieces },
        stdio: ["ignore", "ignore", "inherit"],
      },
    );
    await new Promise((resolve) => child.once("close", resolve));
    const told = JSON.parse(readFileSync(report, "utf8")) as Report;
    rmSync(folder, { recursive: true });
    for (const { assertionResults } of told.testResults)
      for (const { status, fullName, failureMessages } of assertionResults)
        if (status === "failed") failed.push(`${fullName}: ${failureMessages[0]?.split("\n")[0]}`);
    for (const line of failed) say(`BROKE  ${line}`);
    if (told.numPassedTests === 0) failed.push("nothing ran");
    return {
      wrong: failed,
      counts: { pieces: Number(pieces), laws: told.numPassedTests },
      seed: 0,
    };
  },
};

interface Report {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}
