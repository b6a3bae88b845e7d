// The names and types of the app's schema, written by the runner: change the schema instead.

declare module "@runner/schema" {
  export type State = "open" | "paid";

  export interface Shop {
    id: string;
    name: string;
  }

  export interface User {
    id: string;
    email: string;
  }

  /** What was bought. *\/ ends no comment. */
  export interface Order {
    id: string;
    /** The id of a row of Shop. */
    shop: string;
    /** The id of a row of User. */
    buyer: string;
    /** The id of a row of User. */
    seller: string | null;
    /** As the buyer knows it. */
    number: string;
    /** A UUID. */
    token: string;
    site: string | null;
    note: string | null;
    /** Hidden: it is there only for keys whose grant names it. */
    secretNote?: string | null;
    count: number;
    weight: number;
    /** A decimal with 2 places. */
    total: string;
    express: boolean;
    /** A day, as in 2026-01-31. */
    due: string | null;
    /** In seconds. */
    lasts: number | null;
    meta: unknown;
    /** Base64. */
    scan: string | null;
    state: State;
    states: State[];
    tags: string[];
    /** A decimal with 2 places. */
    prices: string[] | null;
    /** A time, as in 2026-01-31T09:30:00.000Z. */
    placedAt: string;
    /** A time, as in 2026-01-31T09:30:00.000Z. */
    madeAt: string;
    /** A time, as in 2026-01-31T09:30:00.000Z. */
    changedAt: string;
    checkedBy: string | null;
  }

  export interface Line {
    id: string;
    /** The id of a row of Shop. */
    shop: string;
    /** The id of a row of Order. */
    order: string;
    sku: string;
  }

  export interface Item {
    sku: string;
    /** A decimal with 2 places. */
    price: string | number;
  }

  /** What a buyer sends. */
  export interface OrderInput {
    number: string;
    /** A decimal with 2 places. */
    total: string | number;
    state?: State | null;
    express?: boolean;
    /** A time, as in 2026-01-31T09:30:00.000Z. */
    at?: string | null;
    items: Item[];
  }
}

declare module "@runner/sdk" {
  import type * as schema from "@runner/schema";
  interface Entities {
    Shop: {
      row: schema.Shop;
      where: {
        id: string;
        name: string;
      };
      insert: {
        id?: string;
        name: string;
      };
      update: {
        name?: string;
      };
    };
    User: {
      row: schema.User;
      where: {
        id: string;
        email: string;
      };
      insert: {
        id?: string;
        email: string;
      };
      update: {
        email?: string;
      };
    };
    Order: {
      row: schema.Order;
      where: {
        id: string;
        shop: string;
        buyer: string;
        seller: string | null;
        number: string;
        token: string;
        site: string | null;
        note: string | null;
        secretNote: string | null;
        count: number;
        weight: number;
        total: string | number;
        express: boolean;
        due: string | null;
        lasts: number | null;
        meta: unknown;
        scan: string | null;
        state: schema.State;
        states: readonly schema.State[];
        tags: readonly string[];
        prices: readonly (string | number)[] | null;
        placedAt: string | Date;
        madeAt: string | Date;
        changedAt: string | Date;
        checkedBy: string | null;
      };
      insert: {
        buyer: string;
        seller?: string | null;
        number: string;
        token: string;
        site?: string | null;
        note?: string | null;
        secretNote?: string | null;
        count?: number;
        weight: number;
        total: string | number;
        express?: boolean;
        due?: string | null;
        lasts?: number | null;
        meta?: unknown;
        scan?: string | null;
        state?: schema.State;
        states: readonly schema.State[];
        tags: readonly string[];
        prices?: readonly (string | number)[] | null;
        placedAt?: string | Date;
      };
      update: {
        buyer?: string;
        seller?: string | null;
        number?: string;
        token?: string;
        site?: string | null;
        note?: string | null;
        secretNote?: string | null;
        count?: number;
        weight?: number;
        total?: string | number;
        express?: boolean;
        due?: string | null;
        lasts?: number | null;
        meta?: unknown;
        scan?: string | null;
        state?: schema.State;
        states?: readonly schema.State[];
        tags?: readonly string[];
        prices?: readonly (string | number)[] | null;
        placedAt?: string | Date;
      };
    };
    Line: {
      row: schema.Line;
      where: {
        id: string;
        shop: string;
        order: string;
        sku: string;
      };
      insert: {
        shop?: string;
        order: string;
        sku: string;
      };
      update: {
        order?: string;
        sku?: string;
      };
    };
  }
  interface Names {
    scope: "all" | "setup";
    role: "owner" | "clerk";
    secret: "HOOK";
  }
}
