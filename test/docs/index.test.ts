// docs/README.md lists every page of docs once, and each page is short and starts with its subject.
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { indexed } from "../../.build/docs.ts";
import { builtin } from "../../plugins/index.ts";
import { CHECKS } from "../rig/package/tutorial/checks.ts";
import { page, stepsOf } from "../rig/package/tutorial/page.ts";
import { ROOT } from "./pages.ts";

const MAX_LINES = 400;
/** Pages that are not split yet. */
const LONG: readonly string[] = [];

const listed = indexed().map(([file]) => file);
const pages = globSync("docs/**/*.md", { cwd: ROOT }).toSorted();
const read = (page: string) => readFileSync(join(ROOT, page), "utf8");
const isLong = (page: string) => read(page).trimEnd().split("\n").length > MAX_LINES;

describe("the index of docs", () => {
  /** Whether the index lists the page, or the first page of its folder that links to it. */
  const isListed = (page: string) =>
    listed.includes(page) ||
    [`${dirname(page)}/README.md`, `${dirname(page)}.md`].some(
      (first) =>
        listed.includes(first) && read(first).includes(`](${relative(dirname(first), page)}`),
    );
  it("lists every page, or the first page of its folder", () => {
    expect(pages.filter((page) => page !== "docs/README.md" && !isListed(page))).toEqual([]);
  });

  it("lists each page once", () => {
    expect(listed.filter((file, i) => listed.indexOf(file) !== i)).toEqual([]);
  });

  it("has one section for each type of page", () => {
    expect([...new Set(indexed().map(([, section]) => section))]).toEqual([
      "Tutorials",
      "How-to guides",
      "Reference",
      "Concepts",
      "Plugins",
      "Runbook",
    ]);
  });
});

describe("every page of docs", () => {
  it(`has at most ${MAX_LINES} lines`, () => {
    expect(pages.filter(isLong)).toEqual(LONG.filter((page) => pages.includes(page)));
  });

  it("starts with a sentence that states its subject", () => {
    const hasSubject = (page: string) =>
      /^# .+\n\n(?:This (?:page|guide|section)|In this tutorial)\b/.test(read(page));
    expect(pages.filter((page) => !hasSubject(page))).toEqual([]);
  });

  it("in the folder of a type is listed in the section of that type", () => {
    const SECTIONS: Readonly<Record<string, string>> = {
      tutorials: "Tutorials",
      guides: "How-to guides",
      reference: "Reference",
      concepts: "Concepts",
      plugins: "Plugins",
      runbook: "Runbook",
    };
    const astray = indexed().filter(([file, section]) => {
      const [, folder = ""] = /^docs\/(\w+)\//.exec(file) ?? [];
      return folder !== "" && SECTIONS[folder] !== section;
    });
    expect(astray).toEqual([]);
  });
});

describe("the README", () => {
  it("states the number of built-in providers", () => {
    const [, count] = /(\d+)\s+built-in\s+providers/.exec(read("README.md"))!;
    expect(Number(count)).toBe(Object.keys(builtin.provider).length);
  });

  it("fits on a few screens", () => {
    expect(read("README.md").split("\n").length).toBeLessThan(150);
  });
});

describe("every tutorial", () => {
  it.each(["first-hour", "first-plugin"] as const)("%s numbers its steps", (name) => {
    const numbers = [...page(name).matchAll(/^## (\d+)\. /gm)].map(([, number]) => Number(number));
    expect(numbers.length).toBeGreaterThan(5);
    expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  });

  it("has a check for each step of the first hour", () => {
    const steps = stepsOf(page("first-hour")).filter(({ stays }) => !stays);
    expect([...new Set(steps.map(({ name }) => name))].toSorted()).toEqual(
      Object.keys(CHECKS).toSorted(),
    );
  });
});
