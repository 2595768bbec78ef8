// Filters of the usage page.
import { useState } from "preact/hooks";
import { html } from "htm/preact";
import { TextField } from "../../parts/fields.ts";
import { icon } from "../../parts/icons.ts";

/** Collapsible filters. Active filters are always visible, and a click removes them. */
export function UsageFilters({
  filters,
  tz,
  setTz,
}: {
  filters: readonly (readonly [name: string, value: string, set: (to: string) => void])[];
  tz: string;
  setTz: (to: string) => void;
}) {
  const set = filters.filter(([, value]) => value);
  const [open, show] = useState(false);
  return html`<section class="box fold">
    <header>
      <button
        type="button"
        class="button bare"
        aria-expanded=${open ? "true" : "false"}
        onClick=${() => show(!open)}
      >
        ${icon("filter")}Filters
      </button>
      ${set.map(
        ([name, value, change]) =>
          html`<button
            type="button"
            class="mark accent plain"
            key=${name}
            aria-label=${`Remove the filter ${name}: ${value}`}
            onClick=${() => change("")}
          >
            <span class="of">${name}: ${value}</span>${icon("close")}
          </button>`,
      )}
      ${set.length === 0 && !open && html`<span class="small faint">none</span>`}
    </header>
    ${
      open &&
      html`<div class="in">
        <div class="filters">
          ${filters.map(
            ([name, value, change]) =>
              html`<${TextField}
                key=${name}
                name=${capitalize(name)}
                value=${value}
                set=${change}
                placeholder="any"
              />`,
          )}
          <${TextField} name="Time zone" value=${tz} set=${setTz} />
        </div>
      </div>`
    }
  </section>`;
}

export const capitalize = (name: string): string =>
  `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
