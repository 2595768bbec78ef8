// Contents of deploy/: dashboards from one source, alerts with a test each, and only names that the
// gateway exports.
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { DASHBOARDS, jsonOf, textOf } from "../../.build/dashboards.ts";
import { COUNTED_FAMILIES, type Family } from "../../plugins/observers/metrics/families.ts";
import { READ_METRICS } from "../../plugins/observers/metrics/gauges.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const FAMILIES: readonly Family[] = [
  ...Object.values(COUNTED_FAMILIES),
  ...Object.values(READ_METRICS),
];

const SUFFIXES = {
  counter: ["_total"],
  gauge: [""],
  histogram: ["_bucket", "_count", "_sum"],
  info: ["_info"],
} as const;
const NAMES = new Set(
  FAMILIES.flatMap(({ name, type }) => SUFFIXES[type].map((end) => `${name}${end}`)),
);
/** Every word of an expression that looks like a Tollgate metric. */
const named = (text: string): readonly string[] =>
  [...text.matchAll(/\b(?:tollgate|process|nodejs)_[a-z0-9_]+/g)].map(([name]) => name);

interface Target {
  refId: string;
  expr: string;
}
interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig?: { defaults: { unit?: string } };
  targets?: Target[];
}
const boards = DASHBOARDS.map(
  (one) =>
    jsonOf(one) as {
      id: null;
      uid: string;
      schemaVersion: number;
      panels: Panel[];
      templating: { list: { name: string; type: string }[] };
    },
);
const rules = parse(read("deploy/prometheus/rules.yaml")) as {
  groups: {
    rules: {
      alert?: string;
      record?: string;
      expr: string;
      labels?: object;
      annotations?: Readonly<Record<string, string>>;
    }[];
  }[];
};
const RULES = rules.groups.flatMap((group) => group.rules);
const shown = boards.flatMap(({ panels }) =>
  panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
);

describe("dashboards", () => {
  it("match their source; node .build/dashboards.ts writes them", () => {
    expect(readdirSync(join(ROOT, "deploy/grafana")).toSorted()).toEqual(
      DASHBOARDS.map(({ uid }) => `${uid}.json`).toSorted(),
    );
    for (const one of DASHBOARDS) expect(read(`deploy/grafana/${one.uid}.json`)).toBe(textOf(one));
  });
  it.each(boards.map((board) => [board.uid, board] as const))(
    "%s can be provisioned",
    (_uid, board) => {
      expect(board.id).toBeNull();
      expect(board.schemaVersion).toBeGreaterThanOrEqual(39);
      expect(board.templating.list[0]).toMatchObject({ name: "datasource", type: "datasource" });
      expect(JSON.stringify(board)).not.toContain("__inputs");
      const ids = board.panels.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      const titles = board.panels.map(({ title }) => title);
      expect(new Set(titles).size).toBe(titles.length);
      for (const { type, fieldConfig, targets = [] } of board.panels) {
        if (type === "row") continue;
        expect(fieldConfig?.defaults.unit).toBeTruthy();
        expect(targets.length).toBeGreaterThan(0);
        expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
      }
    },
  );
  it("no panel overlaps another one or exceeds the page", () => {
    for (const { panels } of boards) {
      const taken = new Set<string>();
      for (const {
        gridPos: { x, y, w, h },
      } of panels) {
        expect(x + w).toBeLessThanOrEqual(24);
        for (let i = 0; i < w * h; i++) {
          const place = `${x + (i % w)},${y + Math.floor(i / w)}`;
          expect(taken.has(place)).toBe(false);
          taken.add(place);
        }
      }
    }
  });
});

it("dashboards, alerts, their tests, and the page name only existing metrics, and all of them", () => {
  const guides = globSync("docs/guides/*.md", { cwd: ROOT }).map(read);
  const page = guides.join("\n");
  const used = [
    ...shown,
    ...RULES.map(({ expr }) => expr),
    read("deploy/prometheus/rules-tests.yaml"),
  ].flatMap(named);
  expect(used.filter((name) => !NAMES.has(name))).toEqual([]);
  // The page names a histogram without its suffix.
  const whole = new Set(FAMILIES.map(({ name }) => name));
  // Prometheus's label is not a metric.
  const metrics = named(page).filter((name) => name !== "tollgate_docs");
  expect(metrics.filter((name) => !NAMES.has(name) && !whole.has(name))).toEqual([]);
  const drawn = new Set([...shown, ...RULES.map(({ expr }) => expr)].flatMap(named));
  const undrawn = FAMILIES.filter(
    ({ name, type }) => !SUFFIXES[type].some((end) => drawn.has(`${name}${end}`)),
  );
  expect(undrawn.map(({ name }) => name)).toEqual([]);
});

/** Start of every runbook link: the external label `tollgate_docs`, if it is set. */
const BASE = "{{ with $externalLabels.tollgate_docs }}{{ . }}/{{ end }}";

it.each(["deploy/prometheus/prometheus.yaml", "deploy/compose/prometheus.yaml"])(
  "the runbook links are complete with %s",
  (file) => {
    const { global: of } = parse(read(file)) as {
      global: { external_labels?: { tollgate_docs: string } };
    };
    const base = of.external_labels?.tollgate_docs ?? "";
    expect(URL.canParse(base) && !base.endsWith("/")).toBe(true);
    for (const { alert, annotations = {} } of RULES) {
      if (alert === undefined) continue;
      const link = annotations["runbook_url"]!.replace(BASE, `${base}/`);
      expect(URL.parse(link)?.pathname).toMatch(/^\/runbook\/[\w-]+\.md$/);
    }
    expect(read("docs/guides/metrics-and-alerts.md")).toContain(`\`${base}\``);
  },
);

it("the chart's docsUrl replaces the start of every runbook link", () => {
  const { monitoring } = parse(read("deploy/chart/values.yaml")) as {
    monitoring: { docsUrl?: string };
  };
  expect(monitoring.docsUrl).toBe("");
  const { properties } = JSON.parse(read("deploy/chart/values.schema.json")) as {
    properties: { monitoring: { properties: { docsUrl?: { pattern: string } } } };
  };
  const { pattern = "^$" } = properties.monitoring.properties.docsUrl ?? {};
  const may = (url: string) => new RegExp(pattern).test(url);
  expect(["", "https://docs.example.com/tollgate", "http://10.0.0.1:8000/"].map(may)).toEqual([
    true,
    true,
    true,
  ]);
  expect(["docs.example.com", "javascript:alert(1)", 'https://a"b'].map(may)).toEqual([
    false,
    false,
    false,
  ]);
  const template = read("deploy/chart/templates/monitoring.yaml");
  expect(template).toContain(`replace \`${BASE}\` `);
  for (const { alert, annotations = {} } of RULES)
    if (alert !== undefined) expect(annotations["runbook_url"]?.startsWith(BASE)).toBe(true);
});

it("every alert has a severity, a summary, a test case, and an entry on the page", () => {
  const cases = (
    parse(read("deploy/prometheus/rules-tests.yaml")) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts: object[] }[] }[];
    }
  ).tests.flatMap(({ alert_rule_test }) => alert_rule_test);
  const page = read("docs/guides/metrics-and-alerts.md");
  for (const { alert, labels, annotations = {} } of RULES) {
    if (alert === undefined) continue;
    expect(labels).toMatchObject({ severity: expect.stringMatching(/^(page|ticket)$/) });
    expect(annotations).toMatchObject({ summary: expect.any(String) });
    const runbook = /runbook\/[\w-]+\.md$/.exec(annotations["runbook_url"] ?? "")?.[0];
    expect([alert, existsSync(join(ROOT, "docs", runbook ?? "none"))]).toEqual([alert, true]);
    const fires = cases.some((one) => one.alertname === alert && one.exp_alerts.length > 0);
    expect([alert, fires]).toEqual([alert, true]);
    expect(page).toContain(`\`${alert}\``);
  }
});

it("counters, timestamps, and units have the names that Prometheus expects", () => {
  for (const { name, type, unit, labels, help } of FAMILIES) {
    expect(name).toMatch(/^(?:tollgate|process|nodejs)_[a-z0-9_]+[a-z0-9]$/);
    expect(name).not.toMatch(/_(?:total|bucket|count|sum|info)$/);
    if (unit !== undefined) expect(name.endsWith(`_${unit}`)).toBe(true);
    if (type === "histogram") expect(labels).not.toContain("le");
    expect(help).toMatch(/^[A-Z].*[^.]$/);
    for (const label of labels) expect(label).toMatch(/^[a-z_]+$/);
  }
  expect(new Set(FAMILIES.map(({ name }) => name)).size).toBe(FAMILIES.length);
});
