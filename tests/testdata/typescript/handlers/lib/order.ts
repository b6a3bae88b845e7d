export interface Order {
  id: string;
  item: string;
  qty: number;
  status: "open" | "paid";
  code: string | null;
  placedAt: string;
}

export type OrderInput = Partial<Pick<Order, "item" | "qty" | "code">>;
