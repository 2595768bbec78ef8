// Invalid configs with their exact messages. UPDATE_FIXTURES=1 writes the current ones.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/config/load-config.ts";
import { formatProblems } from "../../../src/config/problem-report.ts";
import { load } from "./stubs.ts";

const folder = new URL("../../fixtures/config/", import.meta.url).pathname;
const DASHES = /^-{40,}\n/m;
const env = { KEY: "sk-from-outside", TEXT: "neither", REGION: "eu", EMPTY: "" };

describe("every invalid config reports all errors, with their locations", () => {
  for (const name of readdirSync(folder).sort())
    it(name, async () => {
      const path = join(folder, name);
      const [text = "", expected] = readFileSync(path, "utf8").split(DASHES);
      const file = join(folder, "gateway.yaml");
      const { problems, config } = await loadConfig(file, {
        env,
        loadPlugin: load,
        textOverride: text,
      });
      const said = formatProblems(problems, { baseDir: folder }).replaceAll(
        folder,
        "/etc/tollgate/",
      );
      if (process.env["UPDATE_FIXTURES"]) writeFileSync(path, `${text}${"-".repeat(80)}\n${said}`);
      else expect(said).toBe(expected);
      expect(config === undefined).toBe(problems.some((p) => p.severity === "error"));
      for (const secret of [env.KEY, "0123456789", "9876543210", "sk-ant-fallback", "hunter2"])
        expect(said).not.toContain(secret);
    });
});
