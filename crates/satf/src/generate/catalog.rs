//! The products of the made-up shop and the journeys between them, from `catalog.txt`.

use std::sync::LazyLock;

use hashbrown::HashMap;

/// All that the shop sells.
pub(super) struct Catalog {
    /// Every product, department after department.
    pub(super) products: Vec<Product>,
    /// Every department.
    pub(super) departments: Vec<Department>,
}

/// One product.
pub(super) struct Product {
    /// Its name, which is its id in the log.
    pub(super) name: &'static str,
    /// What it leads to, the likeliest first: positions in [`Catalog::products`].
    pub(super) leads_to: Vec<usize>,
    /// How much people want it for itself, without anything leading to it.
    pub(super) appeal: f64,
    /// The part of the log's time that is over when it comes to the shop; 0 for products that were always there.
    pub(super) launch: f64,
    /// Its department: a position in [`Catalog::departments`].
    pub(super) department: usize,
    /// Its place on its department's shelf.
    pub(super) place: usize,
}

/// Products of one kind.
pub(super) struct Department {
    /// How many people shop here, relative to the other departments.
    pub(super) weight: f64,
    /// Its products, each before all that it leads to and journey after journey: positions in
    /// [`Catalog::products`].
    pub(super) shelf: Vec<usize>,
}

/// How fast the appeal falls from the first product of a department to the last: a power of the rank.
const APPEAL_DECAY: f64 = 1.08;

impl Catalog {
    /// The embedded catalogue.
    pub(super) fn get() -> &'static Catalog {
        static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::parse(include_str!("catalog.txt")));
        &CATALOG
    }

    /// Reads the notation that the head of `catalog.txt` describes.
    ///
    /// # Panics
    /// If the text is malformed: it is part of the program.
    fn parse(text: &'static str) -> Catalog {
        let number = |text: &str| text.parse().expect("invariant: numbers of the embedded catalogue parse");
        let mut departments: Vec<Department> = Vec::new();
        let mut products = Vec::new();
        let mut leads: Vec<&'static str> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(heading) = line.strip_prefix("== ") {
                let (_, weight) =
                    heading.rsplit_once(' ').expect("invariant: a department of the catalogue has a weight");
                departments.push(Department { weight: number(weight), shelf: Vec::new() });
                continue;
            }
            let (head, next) = line.split_once(": ").unwrap_or((line, ""));
            let (name, launch) = head.split_once(" @").map_or((head, 0.0), |(name, at)| (name, number(at)));
            let department =
                departments.len().checked_sub(1).expect("invariant: the catalogue begins with a department");
            let Department { weight, shelf } = &mut departments[department];
            shelf.push(products.len());
            let appeal = *weight * (shelf.len() as f64).powf(-APPEAL_DECAY);
            products.push(Product { name, leads_to: Vec::new(), appeal, launch, department, place: 0 });
            leads.push(next);
        }
        let positions: HashMap<&str, usize> =
            products.iter().enumerate().map(|(at, product)| (product.name, at)).collect();
        for (product, next) in products.iter_mut().zip(leads) {
            let names = next.split(", ").filter(|name| !name.is_empty());
            product.leads_to = names
                .map(|name| {
                    *positions.get(name).expect("invariant: journeys lead to products of the catalogue")
                })
                .collect();
        }
        let mut catalog = Catalog { products, departments };
        catalog.arrange();
        catalog
    }

    /// Puts the shelves in order: the reverse of the order in which a depth-first walk leaves the products.
    fn arrange(&mut self) {
        fn walk(products: &[Product], at: usize, walked: &mut [bool], left: &mut Vec<usize>) {
            if !std::mem::replace(&mut walked[at], true) {
                for &next in products[at].leads_to.iter().rev() {
                    walk(products, next, walked, left);
                }
                left.push(at);
            }
        }
        let mut walked = vec![false; self.products.len()];
        let mut left = Vec::with_capacity(self.products.len());
        for at in (0..self.products.len()).rev() {
            walk(&self.products, at, &mut walked, &mut left);
        }
        self.departments.iter_mut().for_each(|department| department.shelf.clear());
        for &at in left.iter().rev() {
            let product = &mut self.products[at];
            let shelf = &mut self.departments[product.department].shelf;
            product.place = shelf.len();
            shelf.push(at);
        }
    }
}

/// A few short histories of the shop, oldest product first, for which a model's recommendations are easy to
/// judge by eye.
pub fn showcase() -> Vec<Vec<&'static str>> {
    vec![
        vec!["laptop", "laptop sleeve"],
        vec!["tent", "sleeping bag"],
        vec!["bread flour", "sourdough starter", "banneton"],
        vec!["puppy food", "collar"],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(name: &str) -> usize {
        let products = &Catalog::get().products;
        products.iter().position(|product| product.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn the_catalogue_is_as_large_as_promised() {
        let catalog = Catalog::get();
        assert_eq!(catalog.departments.len(), 12);
        assert!((250..=400).contains(&catalog.products.len()), "{}", catalog.products.len());
        assert!(catalog.departments.iter().all(|department| department.shelf.len() >= 20));
        let new = catalog.products.iter().filter(|product| product.launch > 0.0).count();
        assert!((3..=15).contains(&new), "{new} new products");
        assert!(catalog.products.iter().all(|product| (0.0..0.6).contains(&product.launch)));
    }

    #[test]
    fn names_are_plain_and_no_name_stands_twice() {
        let mut names: Vec<_> = Catalog::get().products.iter().map(|product| product.name).collect();
        for name in &names {
            let plain = |c: char| c.is_ascii_lowercase() || matches!(c, ' ' | '-' | '\'');
            assert!(name.chars().all(plain) && name.trim() == *name, "{name:?}");
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn every_product_takes_part_in_a_journey() {
        let catalog = Catalog::get();
        let mut touched = vec![false; catalog.products.len()];
        for (at, product) in catalog.products.iter().enumerate() {
            for &next in &product.leads_to {
                touched[at] = true;
                touched[next] = true;
            }
            let distinct: std::collections::BTreeSet<_> = product.leads_to.iter().collect();
            assert_eq!(distinct.len(), product.leads_to.len(), "{} names a product twice", product.name);
        }
        let alone: Vec<_> = (0..touched.len()).filter(|&at| !touched[at]).collect();
        assert!(
            alone.is_empty(),
            "{:?}",
            alone.iter().map(|&at| catalog.products[at].name).collect::<Vec<_>>()
        );
    }

    #[test]
    fn no_journey_leads_back() {
        // Taking off products that nothing leads to, again and again, must take off all of them.
        let products = &Catalog::get().products;
        let mut pointed_at = vec![0; products.len()];
        for &next in products.iter().flat_map(|product| &product.leads_to) {
            pointed_at[next] += 1;
        }
        let mut free: Vec<_> = (0..products.len()).filter(|&at| pointed_at[at] == 0).collect();
        let mut taken_off = 0;
        while let Some(at) = free.pop() {
            taken_off += 1;
            for &next in &products[at].leads_to {
                pointed_at[next] -= 1;
                if pointed_at[next] == 0 {
                    free.push(next);
                }
            }
        }
        assert_eq!(taken_off, products.len());
    }

    #[test]
    fn shelves_hold_every_product_before_what_it_leads_to() {
        let catalog = Catalog::get();
        for (at, product) in catalog.products.iter().enumerate() {
            assert_eq!(catalog.departments[product.department].shelf[product.place], at);
            for &next in &product.leads_to {
                let next = &catalog.products[next];
                assert!(next.department != product.department || next.place > product.place);
            }
        }
        let shelved: usize = catalog.departments.iter().map(|department| department.shelf.len()).sum();
        assert_eq!(shelved, catalog.products.len());
    }

    #[test]
    fn showcases_follow_journeys_and_go_on() {
        let products = &Catalog::get().products;
        for history in showcase() {
            for pair in history.windows(2) {
                assert!(products[position(pair[0])].leads_to.contains(&position(pair[1])), "{pair:?}");
            }
            let last = history.last().unwrap();
            assert!(products[position(last)].leads_to.len() >= 2, "{last} leads nowhere");
        }
    }
}
