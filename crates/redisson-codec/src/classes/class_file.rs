//! A [`JavaClass`] from a `.class` file. See chapter 4 of the Java Virtual Machine Specification.

use super::code::bodies;
use super::model::{ClassKind, Classes, JavaClass, JavaConstant, JavaField, JavaType};
use super::pool::{Input, Outcome, Pool, behind};
use super::predefined::OBJECT;
use super::signature::{class_signature, field_signature, name};
use crate::CodecError;

mod flags {
    pub(super) const STATIC: u16 = 0x8;
    pub(super) const FINAL: u16 = 0x10;
    pub(super) const TRANSIENT: u16 = 0x80;
    pub(super) const INTERFACE: u16 = 0x200;
    pub(super) const ABSTRACT: u16 = 0x400;
    pub(super) const SYNTHETIC: u16 = 0x1000;
    pub(super) const ENUM: u16 = 0x4000;
    pub(super) const MODULE: u16 = 0x8000;
}

/// The most bytes of the code of a method.
const LONGEST_CODE: usize = 65_535;

impl Classes {
    /// Adds the class of a `.class` file, and returns its name. It takes the place of one of the same name.
    ///
    /// # Errors
    /// When it is no class file, or has more than the [limits](super#limits).
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::Classes;
    ///
    /// assert!(Classes::new().add_class_file(b"PK\x03\x04").is_err());
    /// ```
    pub fn add_class_file(&mut self, bytes: &[u8]) -> Result<String, CodecError> {
        let class = read(bytes).map_err(|why| CodecError::new(format!("expected a class file: {why}")))?;
        let name = class.name.clone();
        self.add(vec![class])?;
        Ok(name)
    }
}

/// Reads a class file.
fn read(bytes: &[u8]) -> Outcome<JavaClass> {
    let mut input = Input::new(bytes, 0);
    if input.u4()? != 0xcafe_babe {
        return Err("no ca fe ba be at offset 0".to_owned());
    }
    input.take(4)?;
    let mut pool = Pool::read(&mut input)?;
    let access = input.u2()?;
    if access & flags::MODULE != 0 {
        return Err(format!("a module, and no class, at offset {}", input.at));
    }
    let name = pool.class(input.u2()?, input.at)?;
    let superclass = match input.u2()? {
        0 => None,
        at => Some(pool.class(at, input.at)?),
    };
    let count = input.u2()?;
    let mut interfaces = Vec::new();
    for _ in 0..count {
        interfaces.push(JavaType::class(pool.class(input.u2()?, input.at)?));
    }
    let kind = match superclass.as_deref() {
        _ if access & flags::INTERFACE != 0 => ClassKind::Interface,
        Some("java.lang.Record") => ClassKind::Record,
        _ if access & flags::ENUM != 0 => ClassKind::Enum,
        _ => ClassKind::Class,
    };
    let implied = match kind {
        ClassKind::Record => "java.lang.Record",
        ClassKind::Enum => "java.lang.Enum",
        _ => OBJECT,
    };
    let is_implied =
        |class: &JavaType| matches!(class, JavaType::Class { name, .. } if name == implied || name == OBJECT);
    let mut class = JavaClass {
        name,
        kind,
        is_final: access & flags::FINAL != 0,
        is_abstract: access & flags::ABSTRACT != 0,
        parameters: Vec::new(),
        superclass: superclass.map(JavaType::class),
        interfaces,
        fields: Vec::new(),
        constants: Vec::new(),
    };
    fields(&mut input, &mut pool, &mut class)?;
    methods(&mut input, &mut pool, &mut class)?;
    attributes(&mut input, &mut pool, |name, input, pool| {
        if name == b"Signature" {
            let (at, index) = (input.at, input.u2()?);
            let signature = class_signature(pool.text(index, at)?).map_err(|why| behind(why, at))?;
            class.parameters = signature.parameters;
            class.superclass = Some(signature.superclass);
            class.interfaces = signature.interfaces;
        }
        Ok(())
    })?;
    class.superclass = class.superclass.filter(|class| !is_implied(class));
    match input.left() {
        0 => Ok(class),
        more => Err(format!("{more} bytes follow it at offset {}", input.at)),
    }
}

fn fields<'a>(input: &mut Input<'a>, pool: &mut Pool<'a>, class: &mut JavaClass) -> Outcome<()> {
    for _ in 0..input.u2()? {
        let (at, access) = (input.at, input.u2()?);
        let (index, descriptor) = (input.u2()?, input.u2()?);
        let is_constant = access & flags::ENUM != 0;
        if is_constant || access & (flags::STATIC | flags::SYNTHETIC) != 0 {
            if is_constant {
                let name = name(pool.text(index, at)?).map_err(|why| behind(why, at))?;
                class.constants.push(JavaConstant { name, body: None });
            }
            attributes(input, pool, |_, _, _| Ok(()))?;
            continue;
        }
        let name = name(pool.text(index, at)?).map_err(|why| behind(why, at))?;
        let mut kind = field_signature(pool.text(descriptor, at)?).map_err(|why| behind(why, at))?;
        attributes(input, pool, |attribute, input, pool| {
            if attribute == b"Signature" {
                let (at, index) = (input.at, input.u2()?);
                kind = field_signature(pool.text(index, at)?).map_err(|why| behind(why, at))?;
            }
            Ok(())
        })?;
        class.fields.push(JavaField { name, kind, is_transient: access & flags::TRANSIENT != 0 });
    }
    Ok(())
}

/// Only the one that makes the constants of an enum matters.
fn methods<'a>(input: &mut Input<'a>, pool: &mut Pool<'a>, class: &mut JavaClass) -> Outcome<()> {
    let mut is_read = class.constants.is_empty();
    for _ in 0..input.u2()? {
        let at = input.at;
        input.take(2)?;
        let is_initializer = pool.bytes(input.u2()?, at)? == b"<clinit>";
        input.take(2)?;
        attributes(input, pool, |attribute, input, pool| {
            if is_initializer && !is_read && attribute == b"Code" {
                is_read = true;
                input.take(4)?;
                let length = input.u4()? as usize;
                if length > LONGEST_CODE {
                    return Err(format!("code of more than {LONGEST_CODE} bytes at offset {}", input.at));
                }
                let code = input.take(length)?;
                let start = input.at - length;
                bodies(code, pool, class).map_err(|why| behind(why, start))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Each attribute, which need not be read to its end.
fn attributes<'a>(
    input: &mut Input<'a>,
    pool: &mut Pool<'a>,
    mut read: impl FnMut(&[u8], &mut Input<'a>, &mut Pool<'a>) -> Outcome<()>,
) -> Outcome<()> {
    for _ in 0..input.u2()? {
        let at = input.at;
        let name = pool.bytes(input.u2()?, at)?;
        let length = input.u4()? as usize;
        let start = input.at;
        let content = input.take(length)?;
        read(name, &mut Input::new(content, start), pool)?;
    }
    Ok(())
}
