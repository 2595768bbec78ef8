// Checks deploy/ and .github/workflows: `tollgate test/deploy/main.ts`. The chart is linted,
// rendered, and compared with test/fixtures/chart (UPDATE_CHART=1 writes it), and each of its
// objects is validated by Kubernetes' own schemas. Invalid values are rejected with an explanation.
// The Dockerfile and the workflows are linted, and the exposure of the unit is checked. Ends with a
// line `N passed, N failed`. It needs neither a cluster nor Docker: the rendered chart is not
// installed, and the workflow `ci` starts the image and compose.yaml.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, parseAllDocuments, stringify } from "yaml";
import { fromGo, fromPython } from "./shelf.ts";
import { readSite } from "./site.ts";

const root = join(import.meta.dirname, "../..");
const chart = join(root, "deploy/chart");
const fixtures = join(root, "test/fixtures/chart");
/** Without a cluster, helm assumes an old version. */
const TEMPLATE = ["template", "gate", chart, "--kube-version", "1.33.0"];
/** Kinds of the Prometheus operator, for which Kubernetes has no schema. */
const FOREIGN = ["ServiceMonitor", "PrometheusRule"];

const SECRET = ["--set", "existingSecret=tollgate"];
/** Rendered charts, with their values. */
const CASES: Readonly<Record<string, readonly string[]>> = {
  usual: [],
  sqlite: [
    ...SECRET,
    "--set",
    "store.existingClaim=ledger,service.type=LoadBalancer,admin.enabled=true",
  ],
  postgres: [...SECRET, "--set", "store.kind=postgres,replicas=3,autoscaling.enabled=true"],
  disks: [...SECRET, "--set", "store.kind=postgres,store.disks=true,autoscaling.enabled=true"],
  monitored: [
    ...SECRET,
    "--set",
    "admin.enabled=true,monitoring.enabled=true,monitoring.labels.release=prometheus",
    "--set-json",
    'networkPolicy.adminFrom=[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"monitoring"}}}]',
  ],
};
/** Invalid combinations, and a part of the error message. */
const REFUSED: readonly (readonly [words: RegExp, ...values: string[]])[] = [
  [/replicas must be 1/, "--set", "replicas=2"],
  [/autoscaling\.enabled must be false/, "--set", "autoscaling.enabled=true"],
  [/existingSecret must name a Secret with the key database-url/, "--set", "store.kind=postgres"],
  [/existingSecret must name a Secret with the key scraper/, "--set", "monitoring.enabled=true"],
  [/other machines can reach the admin port/, "--set", "admin.enabled=true"],
  [/replica|not allowed/i, "--set", "replica=2"],
  [/kind/, "--set", "store.kind=mysql"],
];

let [passed, failed] = [0, 0];
function judge(what: string, wrong: string | undefined): void {
  if (wrong === undefined) passed++;
  else failed++;
  console.log(
    `${wrong === undefined ? "  ok   " : "  WRONG"}  ${what}${wrong ? `\n${wrong}` : ""}`,
  );
}
const skipped = (what: string, why: string) => console.log(`  skipped  ${what}: ${why}`);

function run(program: string, args: readonly string[], input?: string) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: root,
    encoding: "utf8",
    input,
  });
  return {
    status,
    stdout: stdout ?? "",
    said: `${stdout ?? ""}${stderr ?? ""}${error ?? ""}`.trim(),
  };
}
const clean = ({ status, said }: { status: number | null; said: string }) =>
  status === 0 ? undefined : said;

const python = await fromPython();
const from = (name: string) => python && join(python, name);
chartIsRight(await fromGo("helm"));
dockerfile();
workflows(await fromGo("actionlint"));
exposure();
await pages();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

function chartIsRight(program: string | undefined): void {
  if (!program) return skipped("the chart", "neither helm nor Go is installed");
  judge("helm lint --strict", clean(run(program, ["lint", "--strict", chart])));
  for (const [name, values] of Object.entries(CASES)) rendered(program, name, values);
  linked(program);
  for (const [words, ...values] of REFUSED) {
    const { status, said } = run(program, [...TEMPLATE, ...values]);
    const wrong = status === 0 ? "it was rendered" : words.test(said) ? undefined : said;
    judge(`refused: ${values.slice(1).join(" ")}`, wrong);
  }
}

/** The runbook links of the alerts, with `monitoring.docsUrl` and without. */
function linked(program: string): void {
  for (const [docsUrl, start] of [
    ["https://docs.example.com/tollgate/", "https://docs.example.com/tollgate/runbook/"],
    ["", "{{ with $externalLabels.tollgate_docs }}{{ . }}/{{ end }}runbook/"],
  ] as const) {
    const values = [...CASES["monitored"]!, "--set", `monitoring.docsUrl=${docsUrl}`];
    const { status, stdout, said } = run(program, [...TEMPLATE, ...values]);
    const links = [...stdout.matchAll(/runbook_url: "(.*)"/g)].map(([, link]) => link!);
    const wrong = links.filter((link) => !link.startsWith(start));
    judge(
      `runbook links with docsUrl "${docsUrl}"`,
      status !== 0 ? said : links.length === 0 ? "no link" : wrong[0],
    );
  }
}

function rendered(program: string, name: string, values: readonly string[]): void {
  const { status, stdout, said } = run(program, [...TEMPLATE, "--namespace", "models", ...values]);
  if (status !== 0) return judge(`chart ${name}`, said);
  // Other tests check the content of dashboards and alerts. Here they must only exist.
  const short = parseAllDocuments(stdout)
    .map(
      (one) =>
        one.toJS() as {
          kind: string;
          data?: Record<string, string>;
          spec?: { groups?: object[] };
        } | null,
    )
    .filter((one) => one !== null)
    .map((one) => {
      for (const file of Object.keys(one.data ?? {}))
        if (file.endsWith(".json"))
          one.data![file] = `${(parse(one.data![file]!) as { title: string }).title}\n`;
      if (one.spec?.groups)
        one.spec.groups = one.spec.groups.map((group) => ({
          name: (group as { name: string }).name,
        }));
      return one;
    });
  const text = short.map((one) => stringify(one, { lineWidth: 0 })).join("---\n");
  const file = join(fixtures, `${name}.yaml`);
  if (process.env["UPDATE_CHART"]) writeFileSync(file, text);
  const golden = readFileSync(file, "utf8");
  judge(
    `chart ${name} is rendered as it was`,
    text === golden ? undefined : differing(golden, text),
  );
  const validate = from("kubernetes-validate");
  if (!validate) return skipped(`chart ${name} and Kubernetes' schemas`, "Python is not installed");
  const own = parseAllDocuments(stdout).filter(
    (one) => one.contents && !FOREIGN.includes(String(one.get("kind"))),
  );
  const folder = mkdtempSync(join(tmpdir(), "tollgate-chart-"));
  writeFileSync(join(folder, "all.yaml"), own.map(String).join("---\n"));
  judge(
    `chart ${name} is what Kubernetes 1.37 takes`,
    clean(run(validate, ["--strict", "-k", "1.37.0", join(folder, "all.yaml")])),
  );
  rmSync(folder, { recursive: true });
}

/** The first different lines. */
function differing(before: string, now: string): string {
  const [a, b] = [before.split("\n"), now.split("\n")];
  const at = b.findIndex((line, i) => line !== a[i]);
  return `line ${at + 1}:\n  was ${a[at]}\n  is  ${b[at]}`;
}

function dockerfile(): void {
  const hadolint = from("hadolint");
  if (!hadolint) return skipped("deploy/Dockerfile", "Python is not installed");
  judge("deploy/Dockerfile", clean(run(hadolint, ["deploy/Dockerfile"])));
}

function workflows(actionlint: string | undefined): void {
  const files = ["ci", "nightly", "prices", "release"].map(
    (name) => `.github/workflows/${name}.yaml`,
  );
  if (actionlint)
    judge("workflows", clean(run(actionlint, ["-shellcheck=", "-pyflakes=", ...files])));
  else skipped("workflows", "no Go here");
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    const loose = [...text.matchAll(/uses: (\S+)/g)].filter(
      ([, use]) => !/@[0-9a-f]{40}$/.test(use!),
    );
    judge(
      `${file}: every action by its hash`,
      loose.length === 0 ? undefined : loose.map(([use]) => use).join("\n"),
    );
    const kept = [...text.matchAll(/secrets\.\w+/g)].map(([name]) => name);
    judge(`${file}: no token that is kept`, kept.length === 0 ? undefined : kept.join("\n"));
  }
}

async function pages(): Promise<void> {
  if (!existsSync(process.env["TOLLGATE_CHROMIUM"] ?? "/usr/bin/chromium"))
    return skipped("the site of the pages", "Chromium is not installed");
  const wrong = await readSite();
  judge(
    "the site of the pages, read in Chromium",
    wrong.length === 0 ? undefined : wrong.join("\n"),
  );
}

function exposure(): void {
  const { status, said } = run("systemd-analyze", [
    "security",
    "--offline=true",
    "--no-pager",
    "deploy/systemd/tollgate.service",
  ]);
  const level = /exposure level for \S+: (\d+\.\d+)/.exec(said)?.[1];
  if (status === null) return skipped("the unit's exposure", "no systemd-analyze here");
  judge(`the unit's exposure is ${level}, at most 1.5`, Number(level) <= 1.5 ? undefined : said);
}
