// Admins: what is let in here, with which role, and which sessions are open now.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useAct } from "../act.ts";
import { type Answer, useAsk } from "../data.ts";
import { icon } from "../parts/icons.ts";
import { Select, Text } from "../parts/fields.ts";
import { Dialog } from "../parts/over.ts";
import { Box, CopyButton, Empty, Mark, NoteBox, SameAs, Shown, Trouble } from "../parts/plain.ts";
import { Table } from "../parts/table.ts";
import { toast } from "../parts/toasts.ts";
import { may } from "../rights.ts";
import { ago, moment } from "../words.ts";

interface Admin {
  readonly id: string;
  readonly name?: string;
  readonly role: string;
  readonly account?: string;
  readonly created: number;
  readonly expires?: number;
  readonly state: "valid" | "expired" | "ended";
}
/** An admin that gateway.yaml names. */
interface Fixed {
  readonly name: string;
  readonly what: "token" | "group";
  readonly role: string;
  readonly account?: string;
}
interface Listed {
  readonly admins: readonly Admin[];
  readonly tokens: readonly { readonly name: string; readonly role: string }[];
  readonly oidc: {
    readonly issuer: string;
    readonly roles: readonly {
      readonly group: string;
      readonly role: string;
      readonly account?: string;
    }[];
  } | null;
}
interface Session {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly within?: string;
  readonly address: string;
  readonly began: number;
  readonly used: number;
  readonly until: number;
}

const ROLES = [
  ["viewer", "viewer: reads"],
  ["operator", "operator: makes changes that can be undone"],
  ["owner", "owner: makes all changes"],
  ["metrics", "metrics: reads metrics only"],
] as const;

export function Admins() {
  const admins = useAsk<Listed>("admins.list", {}, { every: 15_000 });
  const sessions = useAsk<{ sessions: readonly Session[] }>("sessions.list", {}, { every: 10_000 });
  const [making, make] = useState(false);
  return html` <div class="row">
      <span class="grow"></span>
      ${may("admins.create") && html`<button type="button" class="button main" onClick=${() => make(true)}>${icon("accounts")}New admin</button>`}
    </div>
    <${Shown} of=${admins}
      >${(of: Listed) => html`<${AdminTable} rows=${of.admins} again=${admins.again} /><${FromFile} of=${of} />`}<//
    >
    ${may("sessions.list") && html`<${Sessions} of=${sessions} />`}
    <${SameAs} line="tollgate admins list" />
    ${making && html`<${NewAdmin} close=${() => make(false)} made=${admins.again} />`}`;
}

function AdminTable({ rows, again }: { rows: readonly Admin[]; again: () => void }) {
  const end = useAct<unknown>("admins.end");
  const run = async (one: Admin) => {
    if (!(await end.run({ id: one.id }))) return;
    toast(`${one.name ?? one.id} is ended, with its sessions.`);
    again();
  };
  return html`<${Box} flush=${true} title="Admin tokens">
    ${end.problem && html`<${Trouble} problem=${end.problem} />`}
    <${Table}
      label="Admins"
      rows=${rows}
      id=${(row: Admin) => row.id}
      empty=${html`<${Empty} of="audit"><p>No admin has a token in the store. An admin token opens this console and the admin API, and no model.</p><//>`}
      columns=${[...ADMINS, { name: "", of: (row: Admin) => row.state === "valid" && may("admins.end") && html`<${Sure} what=${`End ${row.name ?? row.id}`} run=${() => run(row)} />` }]}
    />
  <//>`;
}

/** Admins that gateway.yaml defines: they are changed there. */
function FromFile({ of: { tokens, oidc } }: { of: Listed }) {
  const rows: Fixed[] = [
    ...tokens.map((each) => ({ ...each, what: "token" as const })),
    ...(oidc?.roles ?? []).map(({ group, ...role }) => ({
      name: group,
      what: "group" as const,
      ...role,
    })),
  ];
  return html`<${Box} flush=${true} title="Defined in gateway.yaml">
    <${Table}
      label="Defined in gateway.yaml"
      rows=${rows}
      id=${(row: Fixed) => `${row.what} ${row.name}`}
      empty=${html`<${Empty} of="audit"><p>gateway.yaml has no tokens under admin.tokens and no groups under admin.oidc.roles.</p><//>`}
      columns=${FIXED}
    />
    ${oidc && html`<p class="small quiet in">Groups are those of <code class="break">${oidc.issuer}</code>. A person gets the first role that matches.</p>`}
  <//>`;
}

const FIXED = [
  {
    name: "Name",
    head: true,
    by: (row: Fixed) => row.name,
    of: (row: Fixed) => html`<span class="break">${row.name}</span>`,
  },
  {
    name: "Signs in with",
    by: (row: Fixed) => row.what,
    of: (row: Fixed) => (row.what === "token" ? "a token" : "the identity provider, by this group"),
  },
  {
    name: "Role",
    by: (row: Fixed) => row.role,
    of: (row: Fixed) =>
      html`${row.role}${row.account && html`<div class="small faint">account ${row.account}</div>`}`,
  },
];

const ADMINS = [
  {
    name: "Admin",
    head: true,
    by: (row: Admin) => row.name ?? row.id,
    of: (row: Admin) => html`<span class="break">${row.name ?? row.id}</span>`,
  },
  {
    name: "State",
    of: (row: Admin) =>
      html`<${Mark} tone=${row.state === "valid" ? "good" : "bad"}>${row.state}<//>`,
  },
  {
    name: "Role",
    by: (row: Admin) => row.role,
    of: (row: Admin) =>
      html`${row.role}${row.account && html`<div class="small faint">account ${row.account}</div>`}`,
  },
  {
    name: "Created",
    by: (row: Admin) => row.created,
    of: (row: Admin) =>
      html`<span class="nowrap" title=${moment(row.created)}>${ago(row.created)}</span>`,
  },
  {
    name: "Expires",
    of: (row: Admin) =>
      row.expires
        ? html`<span class="nowrap" title=${moment(row.expires)}>${ago(row.expires)}</span>`
        : html`<span class="faint">never</span>`,
  },
];

/** Asks once more before it is done. */
function Sure({ what, run }: { what: string; run: () => void }) {
  const [sure, set] = useState(false);
  return sure
    ? html`<span class="row"
        ><button type="button" class="button small danger" onClick=${run}>Yes</button
        ><button type="button" class="button small" onClick=${() => set(false)}>No</button></span
      >`
    : html`<button
        type="button"
        class="button small"
        aria-description=${what}
        onClick=${() => set(true)}
      >
        End
      </button>`;
}

function Sessions({ of }: { of: Answer<{ sessions: readonly Session[] }> }) {
  const end = useAct<{ ended: number }>("sessions.end");
  const run = async (id?: string) => {
    const done = await end.run(id === undefined ? {} : { id });
    if (!done) return;
    toast(`${done.ended} signed out.`);
    of.again();
  };
  return html`<${Box}
    flush=${true}
    title="Sessions"
    actions=${may("sessions.end") && html`<${Sure} what="Sign all out" run=${() => void run()} />`}
  >
    ${end.problem && html`<${Trouble} problem=${end.problem} />`}
    <${Shown} of=${of}
      >${({ sessions }: { sessions: readonly Session[] }) =>
        html`<${Table}
          label="Sessions"
          rows=${sessions}
          id=${(row: Session) => row.id}
          empty=${html`<${Empty} of="audit"><p>No admin is signed in.</p><//>`}
          columns=${[...SESSIONS, { name: "", of: (row: Session) => html`<${Sure} what=${`Sign ${row.name} out`} run=${() => void run(row.id)} />` }]}
        />`}<//
    >
  <//>`;
}

const SESSIONS = [
  {
    name: "Admin",
    head: true,
    of: (row: Session) => html`<span class="break">${row.name}</span>`,
  },
  {
    name: "Role",
    of: (row: Session) =>
      html`${row.role}${row.within && html`<div class="small faint">account ${row.within}</div>`}`,
  },
  { name: "From", of: (row: Session) => html`<code>${row.address}</code>` },
  {
    name: "Signed in",
    of: (row: Session) =>
      html`<span class="nowrap" title=${moment(row.began)}>${ago(row.began)}</span>`,
  },
  { name: "Last active", of: (row: Session) => html`<span class="nowrap">${ago(row.used)}</span>` },
  {
    name: "Expires",
    of: (row: Session) =>
      html`<span class="nowrap" title=${moment(row.until)}>${ago(row.until)}</span>`,
  },
];

function NewAdmin({ close, made }: { close: () => void; made: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("viewer");
  const [account, setAccount] = useState("");
  const [ends, end] = useState("");
  const create = useAct<{ secret: string; admin: Admin }>("admins.create");
  const submit = async (event: Event) => {
    event.preventDefault();
    const done = await create.run({
      name: name.trim(),
      role,
      account: account.trim() || undefined,
      expires: ends ? Date.parse(ends) : undefined,
    });
    if (done) made();
  };
  if (create.value)
    return html`<${Dialog} title=${`${create.value.admin.name} is created`} close=${close}>
      <${NoteBox} tone="good"
        ><p>The token is shown only once.</p>
        <div class="row">
          <span class="secret grow">${create.value.secret}</span
          ><${CopyButton} text=${create.value.secret} name="Copy the token" /></div
      ><//>
      <footer><button type="button" class="button main" onClick=${close}>Done</button></footer>
    <//>`;
  return html`<${Dialog} title="New admin" close=${close}>
    <form class="form" onSubmit=${submit}>
      <${Text}
        name="Name"
        value=${name}
        set=${setName}
        required=${true}
        hint="Shown in the audit log."
      />
      <${Select} name="Role" value=${role} set=${setRole} of=${ROLES} />
      <div class="filters">
        <${Text}
          name="Limited to an account"
          wide=${true}
          value=${account}
          set=${setAccount}
          placeholder="the whole gateway"
        />
        <${Text} name="Expires" type="datetime-local" value=${ends} set=${end} />
      </div>
      ${create.problem && html`<${Trouble} problem=${create.problem} />`}
      <footer>
        <button type="button" class="button" onClick=${close}>Cancel</button
        ><button type="submit" class="button main" disabled=${create.busy || name.trim() === ""}>
          Create the admin
        </button>
      </footer>
    </form>
  <//>`;
}
